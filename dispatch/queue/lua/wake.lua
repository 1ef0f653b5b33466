-- wake: scheduled -> scheduled, due now. For whoever freed what the waiters wait for.
--
-- KEYS  per queue: waiters, scheduled set
-- ARGV  1 prefix of job hashes  2 'oldest' (of all these queues together) or 'all'
-- Answers the ids that are due now. Members that sleep no more leave the set of waiters.
-- uses: switches

local now = now_ms()

local function wake(waiters, scheduled, id)
  if not redis.call('ZSCORE', scheduled, id) then
    redis.call('ZREM', waiters, id)
    return false
  end
  redis.call('ZADD', scheduled, 'XX', 'LT', math.floor(now / 1000), id)
  if redis.call('EXISTS', ARGV[1] .. id) == 1 then
    redis.call('HSET', ARGV[1] .. id, 'until', string.format('%d', now))
  end
  return true
end

-- The queue whose first waiter is the oldest, and that waiter.
local function oldest()
  local place, best
  for i = 1, #KEYS, 2 do
    local first = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')
    if first[1] and (not best or tonumber(first[2]) < best.score) then
      place, best = i, { id = first[1], score = tonumber(first[2]) }
    end
  end
  return place, best and best.id
end

local woken = {}
if ARGV[2] == 'all' then
  for i = 1, #KEYS, 2 do
    for _, id in ipairs(redis.call('ZRANGE', KEYS[i], 0, -1)) do
      if wake(KEYS[i], KEYS[i + 1], id) then
        woken[#woken + 1] = id
      end
    end
  end
  return woken
end
while #woken == 0 do
  local place, id = oldest()
  if not place then
    break
  elseif wake(KEYS[place], KEYS[place + 1], id) then
    woken[1] = id
  end
end
return woken
