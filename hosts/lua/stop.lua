-- Purpose: turn a switch on without an end and ask hosts to stop what they have begun, in one step: what is asked to
-- stop has begun before the switch held.
-- KEYS: the switch (the fleet's pause or a host's drain); then the request of each host.
-- ARGV: by; reason; id of the request; what it comes with: 'drain' or 'pause'.
-- Answers: when, in ms. A repeat with the same id is as good as the first.
-- A request of the fleet's that stands (`with` is not 'drain') is replaced by one that is the fleet's too: the end of a
-- drain takes neither back.
local now = now_ms()
local at = string.format('%.0f', now)
set_switch(KEYS[1], ARGV[1], ARGV[2], now, '')
for i = 2, #KEYS do
  local is_fleets = redis.call('EXISTS', KEYS[i]) == 1 and redis.pcall('HGET', KEYS[i], 'with') ~= 'drain'
  redis.call('DEL', KEYS[i])
  redis.call('HSET', KEYS[i], 'id', ARGV[3], 'at', at, 'by', ARGV[1], 'reason', ARGV[2],
    'with', is_fleets and 'pause' or ARGV[4])
end
return at
