-- Purpose: write a switch (a pause or a drain). Not a script but its beginning, as holds.lua is.
--
-- `set_switch(key, by, reason, since, until_)`: the switch replaces the one before, its end included. `since` and
-- `until_` are ms of this server's clock, `until_` '' when it holds until somebody ends it.
local function set_switch(key, by, reason, since, until_)
  redis.call('DEL', key)
  redis.call('HSET', key, 'by', by, 'reason', reason, 'since', string.format('%.0f', since), 'until', until_)
end
