-- Count that a job's check got no slot, and record that it is held: a starved job has a clock too.
--
-- KEYS  1 hold: wait:job:<job>  2 index: wait:held  3 claim: wait:key:<identity>, only of a job that has an identity
-- ARGV  1 job id  2 now (ms)  3 lifetime of hold, index and own claim (ms)  4 target  5 label  6 identity or ''
--       7 token of the pop that was denied  8 lifetime that a counter needs (ms)
-- Answers since, checks, faults, throttles
--
-- May be repeated: one pop is counted once.

record()
if redis.call('HGET', KEYS[1], 'deniedBy') ~= ARGV[7] then
  redis.call('HSET', KEYS[1], 'deniedBy', ARGV[7], 'throttles', (number(KEYS[1], 'throttles') or 0) + 1)
end
keep(KEYS[1], KEYS[2], ARGV[8])
return counters()
