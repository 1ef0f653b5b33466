-- Purpose: end the fleet's pause and take back the requests to stop that came with it. One that came with a host's drain
-- stays, for the end of that takes it back; one that does not say is the fleet's.
-- KEYS: the fleet's pause; then keys of stop requests.
-- Answers: {whether there was a pause, 1 or 0; then of each request that was taken back which it is, from 1}.
local found = {redis.call('DEL', KEYS[1])}
for i = 2, #KEYS do
  if redis.pcall('HGET', KEYS[i], 'with') ~= 'drain' and redis.call('DEL', KEYS[i]) == 1 then
    table.insert(found, i - 1)
  end
end
return found
