-- Count one round of checks, and its fault: faults are counted in a row, so any other answer starts them again.
--
-- KEYS  1 hold: wait:job:<job>  2 index: wait:held
-- ARGV  1 token of the pop that checked  2 '1' if it could not tell, else '0'  3 lifetime (ms)
-- Answers since, checks, faults, throttles
--
-- May be repeated: one pop is counted once, and what it said last is what counts. `faultsBefore` are those in a row
-- before this pop.

local before = number(KEYS[1], 'faultsBefore')
if redis.call('HGET', KEYS[1], 'checkedBy') ~= ARGV[1] then
  before = number(KEYS[1], 'faults')
  redis.call('HSET', KEYS[1], 'checkedBy', ARGV[1], 'checks', (number(KEYS[1], 'checks') or 0) + 1)
end
before = before or 0
redis.call('HSET', KEYS[1], 'faultsBefore', before, 'faults', ARGV[2] == '1' and before + 1 or 0)
keep(KEYS[1], KEYS[2], ARGV[3])
return counters()
