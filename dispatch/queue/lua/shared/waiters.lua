-- leave_waiters(queue, id, reason, scope) takes a job out of the sets of what waits for that reason; `reason` and
-- `scope` are the fields of its hash (false when unset). A key of another type has nobody in it.
local function leave_waiters(queue, id, reason, scope)
  if not reason then
    return
  end
  local key = 'waiters:' .. queue .. ':' .. reason
  redis.pcall('ZREM', key, id)
  if scope then
    redis.pcall('ZREM', key .. ':' .. scope, id)
  end
end

-- sleep(s) puts a job to sleep: until s['until'] ms, for s.reason, in s.scheduled and s.waiters. The wake time is
-- a whole second, rounded up. `since` is kept while the reason stays the same; s.cause ('' or nil: none) says more.
local function sleep(s)
  local known = redis.call('HMGET', s.job, 'firstQueued', 'reason', 'since')
  local first = tonumber(known[1] or '') or s.now
  if first ~= first then
    -- Not a number, which the sets would refuse.
    first = s.now
  end
  local since = known[2] == s.reason and known[3] or string.format('%d', s.now)
  redis.call('HSET', s.job, 'status', 'scheduled', 'reason', s.reason, 'since', since,
    'until', string.format('%d', s['until']), 'left', s.token)
  redis.call('HDEL', s.job, 'taker', 'host', 'cause')
  if s.cause and s.cause ~= '' then
    redis.call('HSET', s.job, 'cause', s.cause)
  end
  if s.scope ~= '' then
    redis.call('HSET', s.job, 'scope', s.scope)
  end
  redis.call('SADD', s.queues, s.queue)
  redis.call('ZADD', s.scheduled, math.ceil(s['until'] / 1000), s.id)
  redis.call('ZADD', s.waiters, first, s.id)
end
