-- count stall: one more stall of a schedule, in a count that a quiet day forgets.
--
-- KEYS  1 counter
-- ARGV  1 lifetime (s)
-- Answers how many it has had.

local stalls = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], ARGV[1])
return stalls
