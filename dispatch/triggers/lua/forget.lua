-- Forget which job has spent a one-shot, once a record of that job is written.
--
-- KEYS  1 claim (see claim.lua)
-- ARGV  1 `recorded`
-- Answers 1, or 0: there is no claim, or its job may be on its way
--
-- May be repeated.

local found = redis.pcall('HMGET', KEYS[1], 'job', ARGV[1])
if found.err or not found[1] or found[1] ~= found[2] then
  return 0
end
return redis.call('DEL', KEYS[1])
