-- Purpose: a worker's answer to a request to cancel: its name, the request taken away unless a newer one replaced it.
-- KEYS: the request; the answer.
-- ARGV: id of the request; the worker's name; lifetime of the answer in ms.
-- Answers: nothing. May be repeated. The removals come first: see ask_cancel.lua.
local stands = redis.pcall('GET', KEYS[1])
if stands == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
