-- Purpose: end the drain of a host, and the request to stop that came with it. One that came with the fleet's pause
-- stays, and so does one that does not say: `resume` takes those back.
-- KEYS: the drain; the host's request to stop.
-- Answers: {whether there was a drain, whether a request still stands, whether one was taken back}, each 1 or 0.
local drained, taken = redis.call('DEL', KEYS[1]), 0
if redis.pcall('HGET', KEYS[2], 'with') == 'drain' then
  taken = redis.call('DEL', KEYS[2])
end
return {drained, redis.call('EXISTS', KEYS[2]), taken}
