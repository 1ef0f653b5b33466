-- Purpose: turn a switch on without an end and ask hosts to stop what they have begun, in one step: what is asked to
-- stop has begun before the switch held.
-- KEYS: the switch (the fleet's pause or a host's drain); then the request of each host.
-- ARGV: by; reason; id of the request.
-- Answers: when, in ms. A repeat with the same id is as good as the first.
local now = now_ms()
local at = string.format('%.0f', now)
set_switch(KEYS[1], ARGV[1], ARGV[2], now, '')
for i = 2, #KEYS do
  redis.call('DEL', KEYS[i])
  redis.call('HSET', KEYS[i], 'id', ARGV[3], 'at', at, 'by', ARGV[1], 'reason', ARGV[2])
end
return at
