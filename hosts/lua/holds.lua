-- Purpose: judge a switch (a pause or a drain). Not a script but its beginning: `switches.HOLDS` is put before the
-- text of every script that must not go on under a switch, so that all of them judge alike.
--
-- `holds(key, now)`: a switch holds while its key exists, unless `until` is a number that is not later than now.
-- What cannot be read holds: stopping must not depend on well-formed data. The key is one of the script's KEYS.
-- `now_ms()`: this server's clock in whole milliseconds, the only clock that `until` is compared with.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function holds(key, now)
  if redis.call('EXISTS', key) == 0 then
    return false
  end
  local ends = redis.pcall('HGET', key, 'until')
  local ms = type(ends) == 'string' and tonumber(ends) or nil
  return not (ms and ms <= now)
end
