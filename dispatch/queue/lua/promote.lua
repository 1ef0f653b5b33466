-- promote: scheduled, due -> queued. What is due goes before every job that was never taken; together with the jobs
-- at the front that were taken before (they have left a hand, or were put back), by their first queueing. Any worker
-- may call it, for any queues; no lock.
--
-- KEYS  per queue: scheduled set, queue list
-- ARGV  1 prefix of job hashes  2 most jobs per queue  3 most jobs of the front to look at  4 now (RQ's text)
--       5... queue names, in the order of KEYS
-- Answers how many were promoted per queue, -1 where its set or list has another type: then nothing has left its place.
-- An id that is no sleeping job leaves the set.
-- uses: switches waiters front kinds

local seconds = math.floor(now_ms() / 1000)
local prefix, most, most_front, now_text = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

-- Takes what is due off the scheduled set and makes it queued; the first queued first.
local function take_due(scheduled, name)
  local due = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', scheduled, '-inf', seconds, 'LIMIT', 0, most)) do
    redis.call('ZREM', scheduled, id)
    local job = prefix .. id
    local found = redis.pcall('HMGET', job, 'status', 'firstQueued', 'reason', 'scope')
    if not found.err and found[1] == 'scheduled' then
      due[#due + 1] = { id = id, first = instant(found[2]) }
      leave_waiters(name, id, found[3], found[4])
      redis.call('HDEL', job, 'until')
      redis.call('HSET', job, 'status', 'queued', 'enqueued_at', now_text)
    end
  end
  table.sort(due, function(a, b)
    return a.first < b.first or (a.first == b.first and a.id < b.id)
  end)
  return due
end

local function promote(scheduled, queue, name)
  if not (is_kind(scheduled, 'zset') and is_kind(queue, 'list')) then
    return -1
  end
  local due = take_due(scheduled, name)
  if #due > 0 then
    local jobs = taken_before(queue, prefix, most_front)
    redis.call('LTRIM', queue, #jobs, -1)
    for _, one in ipairs(due) do
      jobs[#jobs + 1] = one
    end
    for place, one in ipairs(jobs) do
      one.place = place
    end
    -- Who was queued in the same instant keeps the order, and stands before what comes.
    table.sort(jobs, function(a, b)
      return a.first < b.first or (a.first == b.first and a.place < b.place)
    end)
    push_front(queue, jobs)
  end
  return #due
end

local counts = {}
for i = 1, #KEYS, 2 do
  counts[#counts + 1] = promote(KEYS[i], KEYS[i + 1], ARGV[5 + (i - 1) / 2])
end
return counts
