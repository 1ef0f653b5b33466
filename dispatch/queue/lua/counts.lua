-- counts: how many jobs each queue has in which state, at one instant.
--
-- KEYS  1 pause:*, then per queue: queue list, scheduled set, started registry, failed registry, takers,
--       pause:<queue>
-- ARGV  the queue names
-- Answers per queue: waiting, in hand, started, sleeping, failed, 1 if it is paused
-- uses: switches

local now = now_ms()
local rows = {}
for i, name in ipairs(ARGV) do
  local at = 2 + (i - 1) * 6
  local in_hand = 0
  for _, boot in ipairs(redis.call('ZRANGE', KEYS[at + 4], 0, -1)) do
    in_hand = in_hand + redis.call('LLEN', name .. ':taken:' .. boot)
  end
  rows[i] = {
    redis.call('LLEN', KEYS[at]),
    in_hand,
    redis.call('ZCARD', KEYS[at + 2]),
    redis.call('ZCARD', KEYS[at + 1]),
    redis.call('ZCOUNT', KEYS[at + 3], math.floor(now / 1000), '+inf'),
    (holds(KEYS[1], now) or holds(KEYS[at + 5], now)) and 1 or 0,
  }
end
return rows
