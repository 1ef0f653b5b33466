-- End a hold because its conditions are met: forget it and, if there ever was one, mark the target as satisfied.
--
-- KEYS  1 hold: wait:job:<job>  2 index: wait:held  3 claim: wait:key:<identity>  4 marker: wait:done:<identity>,
--       the last two only of a job that has an identity
-- ARGV  1 job id  2 lifetime of the marker (ms)
-- Answers when the hold was first recorded (ms), '' if it never was
--
-- The marker comes first: it is what a full server refuses, and then nothing has happened.

local since = number(KEYS[1], 'since')
if since and KEYS[4] then
  redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[2])
end
let_go()
return since and string.format('%.0f', since) or ''
