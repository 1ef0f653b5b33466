-- List the jobs that are held. Members whose hold is gone, or never began, leave the index.
--
-- KEYS  1 index: wait:held
-- ARGV  1 prefix of holds
-- Answers for each: job id, since, target, label, checks, faults, throttles

local rows = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local hold = redis.pcall('HMGET', ARGV[1] .. id, 'since', 'target', 'label', 'checks', 'faults', 'throttles')
  if not hold.err and whole(hold[1]) then
    rows[#rows + 1] = { id, unpack(hold, 1, 6) }
  else
    redis.call('SREM', KEYS[1], id)
  end
end
return rows
