-- The front of a queue: the jobs that were taken before (they have left a hand, or were put back) go before every job
-- that was never taken.

-- Ids per command: what Lua can pass as arguments is limited.
local PAGE = 500

-- What makes no sense sorts foremost.
local function instant(text)
  local value = tonumber(text or '') or 0
  return value == value and value or 0
end

-- was_taken(left, put_backs) judges two fields of a job's hash.
local function was_taken(left, put_backs)
  return left or instant(put_backs) ~= 0
end

-- taken_before(queue, prefix, most) answers {id, first (its firstQueued)} of the jobs at the front up to the first
-- that was never taken, at most that many. What stands for no waiting job is no border: its pop drops it.
local function taken_before(queue, prefix, most)
  local front, size = {}, 1
  while #front < most do
    local ids = redis.call('LRANGE', queue, #front, math.min(#front + size, most) - 1)
    for _, id in ipairs(ids) do
      local found = redis.pcall('HMGET', prefix .. id, 'status', 'left', 'putBacks', 'firstQueued')
      local waits = not found.err and found[1] == 'queued'
      if waits and not was_taken(found[2], found[3]) then
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

-- push_front(queue, jobs) puts jobs ({id}) before all others, in their order.
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
