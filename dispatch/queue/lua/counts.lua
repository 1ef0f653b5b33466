-- counts: how many jobs each queue has in which state, at one instant.
--
-- KEYS  1 pause:*, then per queue: queue list, scheduled set, started registry, failed registry, takers,
--       pause:<queue>
-- ARGV  the queue names
-- Answers per queue: waiting, in hand, started, sleeping, failed, 1 if it is paused; or the error of a key that cannot
-- be read. A taken list of another type counts nothing.
-- uses: switches apart

local now = now_ms()

local function figures(name, listed, scheduled, started, failed, takers, pause)
  local in_hand = 0
  for _, boot in ipairs(redis.call('ZRANGE', takers, 0, -1)) do
    local length = redis.pcall('LLEN', name .. ':taken:' .. boot)
    in_hand = in_hand + (type(length) == 'number' and length or 0)
  end
  return {
    redis.call('LLEN', listed),
    in_hand,
    redis.call('ZCARD', started),
    redis.call('ZCARD', scheduled),
    redis.call('ZCOUNT', failed, math.floor(now / 1000), '+inf'),
    (holds(KEYS[1], now) or holds(pause, now)) and 1 or 0,
  }
end

local rows = {}
for i, name in ipairs(ARGV) do
  local at = 2 + (i - 1) * 6
  rows[i] = apart(figures, name, unpack(KEYS, at, at + 5))
end
return rows
