-- promote: scheduled, due -> queued. What is due goes to the front of its queue, the job that was queued first
-- foremost. Any worker may call it, for any queues; no lock.
--
-- KEYS  per queue: scheduled set, queue list
-- ARGV  1 prefix of job hashes  2 most jobs per queue  3 now (RQ's text)  4... queue names, in the order of KEYS
-- Answers how many were promoted per queue. An id that is no sleeping job leaves the set.
-- uses: switches waiters

local seconds = math.floor(now_ms() / 1000)
local counts = {}
for i = 1, #KEYS, 2 do
  local scheduled, queue, name = KEYS[i], KEYS[i + 1], ARGV[4 + (i - 1) / 2]
  local ready = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', scheduled, '-inf', seconds, 'LIMIT', 0, ARGV[2])) do
    redis.call('ZREM', scheduled, id)
    local job = ARGV[1] .. id
    local found = redis.pcall('HMGET', job, 'status', 'firstQueued', 'reason', 'scope')
    if not found.err and found[1] == 'scheduled' then
      local first = tonumber(found[2] or '') or 0
      ready[#ready + 1] = { id = id, first = first == first and first or 0 }
      leave_waiters(name, id, found[3], found[4])
      redis.call('HDEL', job, 'until')
      redis.call('HSET', job, 'status', 'queued', 'enqueued_at', ARGV[3])
    end
  end
  table.sort(ready, function(a, b)
    return a.first > b.first or (a.first == b.first and a.id > b.id)
  end)
  for _, one in ipairs(ready) do
    redis.call('LPUSH', queue, one.id)
  end
  counts[#counts + 1] = #ready
end
return counts
