-- Purpose: a worker's answer to a request to stop, replacing what it said before.
-- KEYS: its answer.
-- ARGV: lifetime in ms; id of the request; then per container its name and 'gone' or 'unconfirmed'.
-- Answers: nothing.
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'request', ARGV[2])
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'c:' .. ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
