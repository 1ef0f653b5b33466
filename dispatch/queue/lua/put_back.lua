-- put back: in hand of a dead or forgetful taker -> queued, at the front; after too many times -> failed
-- (worker-lost), with a record pushed to the host that sweeps. Any worker may call it.
--
-- KEYS  1 job hash  2 taken list of the boot that has it  3 queue list  4 takers  5 failed registry
--       6 results of the job  7 pending records of the sweeping host
-- ARGV  1 id  2 boot  3 token seen ('' = moved, never claimed)  4 silence that condemns (ms), or -1 to ask nobody
--       5 most put-backs  6 record, or '' while none is built  7 now (RQ's text)  8 now (epoch seconds)
--       9 default lifetime (s)  10, 11 name and value of the result's field
-- Answers 'done' | 'failed' | 'over' (one put-back too many: call again with a record; nothing changed)
--       | 'alive' (its taker spoke or claimed it again) | 'lost' (it is not there any more)
-- uses: switches owner finish

local job, taken, id, boot = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if not redis.call('LPOS', taken, id) then
  return 'lost'
end
local now = now_ms()
local silence = tonumber(ARGV[4])
local beat = silence >= 0 and redis.call('ZSCORE', KEYS[4], boot)
if beat and now - beat <= silence then
  return 'alive'
end
local found = redis.pcall('HMGET', job, 'status', 'taker', 'putBacks')
if found.err or found[1] ~= 'queued' or (found[2] and boot_of(found[2]) ~= boot) then
  -- An entry that stands for nothing: the job is gone, has moved on, or is in another taker's hand.
  redis.call('LREM', taken, 1, id)
  return 'lost'
end
if (found[2] or '') ~= ARGV[3] then
  return 'alive'
end
local times = (tonumber(found[3] or '') or 0) + 1
if times > tonumber(ARGV[5]) then
  if ARGV[6] == '' then
    return 'over'
  end
  can_finish(KEYS[6], KEYS[5], KEYS[7])
  redis.call('LREM', taken, 1, id)
  finish({
    job = job, id = id, now = now, status = 'failed', ttl = ARGV[9], registry = KEYS[5], results = KEYS[6],
    worker = '', payload = { ARGV[10], ARGV[11] }, ended_at = ARGV[7], ended = ARGV[8], records = KEYS[7],
    record = ARGV[6],
  })
  return 'failed'
end
-- A list of another type fails here, before anything has left its place.
redis.call('LLEN', KEYS[3])
redis.call('LREM', taken, 1, id)
redis.call('HDEL', job, 'taker', 'host')
redis.call('LPUSH', KEYS[3], id)
redis.call('HSET', job, 'putBacks', string.format('%d', times))
return 'done'
