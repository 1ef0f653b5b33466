-- Purpose: judge a switch (a pause or a drain). Not a script but its beginning: `switches.HOLDS` is put before the
-- text of every script that must not go on under a switch, so that all of them judge alike.
--
-- `holds(key, now_ms)`: a switch holds while its hash exists and `until` is empty, missing, not a number, or later
-- than now. The key must be one of the script's KEYS.
-- `now_ms()`: this server's clock in whole milliseconds, the only clock that `until` is compared with.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function holds(key, now)
  local ends = redis.call('HGET', key, 'until')
  if not ends then
    return redis.call('EXISTS', key) == 1
  end
  local ms = tonumber(ends)
  return ms == nil or ms > now
end
