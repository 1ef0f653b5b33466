-- Pay one reservation back: forget the grant and take one start off each counter that it had added to.
--
-- KEYS[1]  the grant of the attempt: budget:r:<job>:<attempt>
-- KEYS[2]  hash of the job (fields status, taker), read only with ARGV[2]
-- ARGV[1]  token of the pop that gives it back; '' with ARGV[2]: nobody's, the job was taken out before that attempt
--          began
-- ARGV[2]  '' to give back what this pop holds; firstQueued of the job (ms) to give back what an earlier pop of it
--          left, as long as this one has the job in hand: it was never begun, so that no container was asked for
--
-- Answers 1 when it was paid back, 0 when nothing is stored or it is not this pop's to give back.
--
-- The counters are those of the instant of the reservation, read from the grant (shared.lua: how they are lowered).
-- The grant goes first: it is a write that a full server allows, and after it the rest is allowed too.

local stored = redis.call('HMGET', KEYS[1], 'token', 'windows', 'firstQueued')
local is_ours = stored[1] == ARGV[1]
if ARGV[2] ~= '' then
  local job = redis.pcall('HMGET', KEYS[2], 'status', 'taker')
  if ARGV[1] == '' then
    is_ours = stored[3] == ARGV[2] and job[1] ~= 'started'
  else
    is_ours = stored[3] == ARGV[2] and not job.err and job[1] == 'queued' and job[2] == ARGV[1]
  end
end
if not stored[1] or not is_ours then
  return 0
end
redis.call('DEL', KEYS[1])
pay_back(stored[2])
return 1
