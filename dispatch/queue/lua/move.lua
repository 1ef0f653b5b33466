-- move: queued or scheduled -> the same on another queue, for a reroute. Only what nobody has in hand. A sleeping job
-- keeps its wake time and what it waits for; one in line stands behind those of its kind there: taken before, or not.
--
-- KEYS  1 queue list  2 scheduled set  3, 4 those of the other queue  5 set of RQ's queues  6 known queues
-- ARGV  1 queue name  2 the other's name  3 prefix of job hashes  4 most jobs of the other's front to look at
--       5... ids, those in line in their order
-- Answers per id: 'moved' (by an earlier try, too) | 'in-hand' | 'started' | 'over' | 'elsewhere' | 'absent'
-- uses: waiters front

local name, other, prefix = ARGV[1], ARGV[2], ARGV[3]

-- What has a wrong type fails here, before anything has left its place.
redis.call('LLEN', KEYS[3])
redis.call('ZCARD', KEYS[4])
redis.call('SCARD', KEYS[5])
redis.call('SCARD', KEYS[6])

local function move_waiter(id, waits_for)
  local key = ':' .. waits_for
  local first = redis.call('ZSCORE', 'waiters:' .. name .. key, id)
  if first then
    redis.call('ZADD', 'waiters:' .. other .. key, first, id)
    redis.call('ZREM', 'waiters:' .. name .. key, id)
  end
end

local function move_sleeper(id, reason, scope)
  local wakes = redis.call('ZSCORE', KEYS[2], id)
  if not wakes then
    return 'absent'
  end
  if reason then
    move_waiter(id, reason)
    if scope then
      move_waiter(id, reason .. ':' .. scope)
    end
  end
  redis.call('ZADD', KEYS[4], wakes, id)
  redis.call('ZREM', KEYS[2], id)
  redis.call('HSET', prefix .. id, 'origin', other)
  return 'moved'
end

-- What stands in line waits for the second round: once one has left its list, nothing fails before it is in the other.
local line = {}
local function move_unless_in_line(place, id)
  local found = redis.pcall('HMGET', prefix .. id, 'status', 'origin', 'taker', 'reason', 'scope', 'left', 'putBacks')
  if found.err or not found[1] then
    return 'absent'
  end
  local status, origin = found[1], found[2]
  if origin ~= name then
    return origin == other and 'moved' or 'elsewhere'
  elseif status == 'scheduled' then
    return move_sleeper(id, found[4], found[5])
  elseif status ~= 'queued' then
    return status == 'started' and status or 'over'
  elseif not found[3] then
    line[#line + 1] = { id = id, place = place, was_taken = was_taken(found[6], found[7]) }
  end
  return 'in-hand'
end

local answer = {}
for i = 5, #ARGV do
  answer[#answer + 1] = move_unless_in_line(#answer + 1, ARGV[i])
end

local front, back = {}, {}
for _, one in ipairs(line) do
  -- Without a token, but not in line: just popped and not yet claimed.
  if redis.call('LREM', KEYS[1], 1, one.id) > 0 then
    redis.call('HSET', prefix .. one.id, 'origin', other)
    answer[one.place] = 'moved'
    local part = one.was_taken and front or back
    part[#part + 1] = one
  end
end
if #front > 0 then
  local jobs = taken_before(KEYS[3], prefix, tonumber(ARGV[4]))
  redis.call('LTRIM', KEYS[3], #jobs, -1)
  for _, one in ipairs(front) do
    jobs[#jobs + 1] = one
  end
  push_front(KEYS[3], jobs)
end
for _, one in ipairs(back) do
  redis.call('RPUSH', KEYS[3], one.id)
end
for _, one in ipairs(answer) do
  if one == 'moved' then
    redis.call('SADD', KEYS[5], KEYS[3])
    redis.call('SADD', KEYS[6], other)
    break
  end
end
return answer
