-- Purpose: read what is asked of one worker: to stop all that it runs, or to cancel one of its jobs. Changes nothing.
-- KEYS: the request to stop; the host's containers; then the request to cancel each of its jobs.
-- Answers: {stands (1 or 0), id, at in ms, names of the host's containers, the cancel requests' ids}, '' for what is
--   not there or no text. The containers are read only while a request to stop stands.
local function text(command, ...)
  local found = redis.pcall(command, ...)
  return type(found) == 'string' and found or ''
end
local stands = redis.call('EXISTS', KEYS[1])
local names = stands == 1 and redis.pcall('HKEYS', KEYS[2]) or {}
local cancels = {}
for i = 3, #KEYS do
  table.insert(cancels, text('GET', KEYS[i]))
end
return {stands, text('HGET', KEYS[1], 'id'), text('HGET', KEYS[1], 'at'), names.err and {} or names, cancels}
