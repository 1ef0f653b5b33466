-- promote: scheduled, due -> queued. What is due goes before every job that was never taken; together with the jobs
-- at the front that were taken before (they have left a hand, or were put back), by their first queueing. Any worker
-- may call it, for any queues; no lock.
--
-- KEYS  per queue: scheduled set, queue list
-- ARGV  1 prefix of job hashes  2 most jobs per queue  3 most jobs of the front to look at  4 now (RQ's text)
--       5... queue names, in the order of KEYS
-- Answers how many were promoted per queue. An id that is no sleeping job leaves the set.
-- uses: switches waiters

local seconds = math.floor(now_ms() / 1000)
local prefix, most, most_front, now_text = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
-- Ids per command: what Lua can pass as arguments is limited.
local PAGE = 500

-- What makes no sense sorts foremost.
local function instant(text)
  local value = tonumber(text or '') or 0
  return value == value and value or 0
end

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

-- The jobs at the front up to the first that was never taken. What stands for no waiting job is no border: its pop
-- drops it.
local function taken_before(queue)
  local front, size = {}, 1
  while #front < most_front do
    local ids = redis.call('LRANGE', queue, #front, math.min(#front + size, most_front) - 1)
    for _, id in ipairs(ids) do
      local found = redis.pcall('HMGET', prefix .. id, 'status', 'left', 'putBacks', 'firstQueued')
      local waits = not found.err and found[1] == 'queued'
      if waits and not found[2] and instant(found[3]) == 0 then
        return front
      end
      front[#front + 1] = { id = id, first = waits and instant(found[4]) or 0 }
    end
    if #ids < size then
      return front
    end
    size = PAGE
  end
  return front
end

local function push_front(queue, jobs)
  local ids = {}
  for i = #jobs, 1, -1 do
    ids[#ids + 1] = jobs[i].id
    if #ids == PAGE or i == 1 then
      redis.call('LPUSH', queue, unpack(ids))
      ids = {}
    end
  end
end

local counts = {}
for i = 1, #KEYS, 2 do
  local scheduled, queue, name = KEYS[i], KEYS[i + 1], ARGV[5 + (i - 1) / 2]
  local due = take_due(scheduled, name)
  counts[#counts + 1] = #due
  if #due > 0 then
    local jobs = taken_before(queue)
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
end
return counts
