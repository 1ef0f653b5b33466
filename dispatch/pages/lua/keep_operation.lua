-- Purpose: keep how a background action of a web process stands; that it is called is the sign of its life.
-- KEYS: 1 the action's hash  2 the list of its rows  3 the sorted set of the latest actions
-- ARGV: 1 the action's id  2 its head, '' when more rows come before it  3 for how many seconds to keep it
--       4 how many of the latest to keep
--       5 'all' when the rows replace those that stand, 'more' when they are to be added
--       then the rows.
-- Answers: when it began, in ms of this server's clock.
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
if redis.call('HSETNX', KEYS[1], 'started', now) == 1 then
  redis.call('ZADD', KEYS[3], now, ARGV[1])
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - tonumber(ARGV[4]))
end
redis.call('HSET', KEYS[1], 'beat', now)
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'head', ARGV[2])
end
if ARGV[5] == 'all' then
  redis.call('DEL', KEYS[2])
end
for i = 6, #ARGV do
  redis.call('RPUSH', KEYS[2], ARGV[i])
end
for i = 1, 3 do
  redis.call('EXPIRE', KEYS[i], ARGV[3])
end
return redis.call('HGET', KEYS[1], 'started')
