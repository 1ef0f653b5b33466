-- Purpose: a host leaves the registry. What is not its own row, of this boot, stays as it is.
-- KEYS: its row; the set of live names.
-- ARGV: name; host-id; boot.
-- Answers: 1 when it was there, else 0.
local said = redis.pcall('HMGET', KEYS[1], 'hostId', 'boot')
if said.err or said[1] ~= ARGV[2] or said[2] ~= ARGV[3] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.pcall('SREM', KEYS[2], ARGV[1])
return 1
