-- Purpose: turn a switch on without an end and ask hosts to stop what they have begun, in one step: what is asked to
-- stop has begun before the switch held.
-- KEYS: the switch (the fleet's pause or a host's drain); then the request of each host.
-- ARGV: by; reason; id of the request; what it comes with: 'drain' or 'pause'.
-- Answers: when, in ms. A repeat with the same id is as good as the first.
-- Without a reason given, a switch that holds for one keeps it, and whose it is and since when: only its end goes.
-- A request of the fleet's that stands (`with` is not 'drain') is replaced by one that is the fleet's too: the end of a
-- drain takes neither back.
local now = now_ms()
local at = string.format('%.0f', now)
local by, reason, since = ARGV[1], ARGV[2], now
if reason == '' and holds(KEYS[1], now) then
  local found = redis.pcall('HMGET', KEYS[1], 'by', 'reason', 'since')
  if not found.err and found[2] and found[2] ~= '' then
    by, reason, since = found[1] or '', found[2], tonumber(found[3] or '') or now
  end
end
set_switch(KEYS[1], by, reason, since, '')
for i = 2, #KEYS do
  local is_fleets = redis.call('EXISTS', KEYS[i]) == 1 and redis.pcall('HGET', KEYS[i], 'with') ~= 'drain'
  redis.call('DEL', KEYS[i])
  redis.call('HSET', KEYS[i], 'id', ARGV[3], 'at', at, 'by', ARGV[1], 'reason', reason,
    'with', is_fleets and 'pause' or ARGV[4])
end
return at
