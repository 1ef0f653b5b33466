-- Purpose: take a request to cancel back that nobody has answered.
-- KEYS: the request; the answer.
-- ARGV: id of the request.
-- Answers: the name of the worker that has answered meanwhile, '' if none.
local answered = redis.pcall('GET', KEYS[2])
if type(answered) == 'string' then
  return answered
end
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return ''
