-- Add the tokens that an attempt's container used to the counter of a day, once.
--
-- KEYS[1]  the grant of the attempt: budget:r:<job>:<attempt>
-- KEYS[2]  the counter of the day: budget:t:YYYY-MM-DD
-- ARGV[1]  tokens, a positive whole number
-- ARGV[2]  lifetime of a grant, s
-- ARGV[3]  lifetime of the counter, s
-- ARGV[4]  the most that a counter may hold
--
-- Answers 1 when they were added, 0 when an earlier call had added this attempt's.
--
-- The grant's field `tokens` says that it was done. Where the grant is gone, the tokens were used all the same:
-- they are counted, and the field alone stands in its place, which neither a reservation nor a refund takes for
-- a grant. A counter that is full stays so: it must not become an error that leaves tokens uncounted.
--
-- Everything is read before the first write, and the first write is one that a full server refuses: so an error,
-- whatever it is, means that nothing was added.

local grant, counter = KEYS[1], KEYS[2]

if redis.call('HEXISTS', grant, 'tokens') == 1 then
  return 0
end
local value = redis.call('GET', counter) or '0'
if value ~= '0' and not string.match(value, '^%-?[1-9]%d*$') or #value > 16 then
  return redis.error_reply('ERR a spend counter holds no whole number')
end
local room = math.max(0, tonumber(ARGV[4]) - tonumber(value))
redis.call('INCRBY', counter, string.format('%.0f', math.min(tonumber(ARGV[1]), room)))
if redis.call('TTL', counter) < 0 then
  redis.call('EXPIRE', counter, ARGV[3])
end
redis.call('HSET', grant, 'tokens', ARGV[1])
if redis.call('TTL', grant) < 0 then
  redis.call('EXPIRE', grant, ARGV[2])
end
return 1
