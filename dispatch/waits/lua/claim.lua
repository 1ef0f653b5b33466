-- Claim a target for a job: only one of several jobs of the same identity waits for it.
--
-- KEYS  1 claim: wait:key:<identity>
-- ARGV  1 job id  2 lifetime (ms)  3 the holder whose claim may be taken over, '' for nobody's
-- Answers the id of the job that holds it now
--
-- May be repeated. Own claims are lengthened.

local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  lengthen(KEYS[1], ARGV[2])
elseif not holder or holder == ARGV[3] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  holder = ARGV[1]
end
return holder
