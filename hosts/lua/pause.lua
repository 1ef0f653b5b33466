-- Purpose: pause queues or the fleet: all or none, each pause replacing the one before.
-- KEYS: the set of known queues; one or more pause keys.
-- ARGV: by; reason; how long in ms ('' = until resumed); then the scope of each pause key ('*' = the fleet).
-- Answers: {since, until}, both in ms, until '' when open.
local since = now_ms()
local ends = ''
if ARGV[3] ~= '' then
  ends = string.format('%.0f', since + tonumber(ARGV[3]))
end
for i = 2, #KEYS do
  redis.call('DEL', KEYS[i])
  redis.call('HSET', KEYS[i], 'by', ARGV[1], 'reason', ARGV[2], 'since', string.format('%.0f', since), 'until', ends)
  local scope = ARGV[i + 2]
  if scope ~= '*' then
    redis.call('SADD', KEYS[1], scope)
  end
end
return {string.format('%.0f', since), ends}
