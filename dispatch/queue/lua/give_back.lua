-- give back: in hand -> queued, at the front. For a pause, a drain, a missing slot or a shutdown.
--
-- KEYS  1 job hash  2 taken list of this boot  3 queue list
-- ARGV  1 id  2 token
-- Answers 'done' | 'lost'
-- uses: owner

local has = owner(KEYS[1], ARGV[2])
if has == 'left' then
  return 'done'
elseif has ~= 'hand' then
  return 'lost'
end
-- A list of another type fails here, before anything has left its place.
redis.call('LLEN', KEYS[3])
redis.call('LREM', KEYS[2], 1, ARGV[1])
redis.call('HDEL', KEYS[1], 'taker', 'host')
redis.call('LPUSH', KEYS[3], ARGV[1])
redis.call('HSET', KEYS[1], 'left', ARGV[2])
return 'done'
