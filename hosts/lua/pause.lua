-- Purpose: pause queues or the fleet, or drain a host: all or none, each switch replacing the one before.
-- KEYS: the set of known queues; one or more switch keys.
-- ARGV: by; reason; how long in ms ('' = until ended); then for each switch the queue that is to be known ('' = none).
-- Answers: {since, until}, both in ms, until '' when open.
local since = now_ms()
local ends = ''
if ARGV[3] ~= '' then
  ends = string.format('%.0f', since + tonumber(ARGV[3]))
end
for i = 2, #KEYS do
  set_switch(KEYS[i], ARGV[1], ARGV[2], since, ends)
  local queue = ARGV[i + 2]
  if queue ~= '' then
    redis.call('SADD', KEYS[1], queue)
  end
end
return {string.format('%.0f', since), ends}
