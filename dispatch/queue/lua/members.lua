-- members: the ids of all jobs of one queue at one instant, by where they stand. Changes nothing.
--
-- KEYS  1 queue list  2 scheduled set  3 started registry  4 takers  5 waiters that are held by a condition
-- ARGV  1 queue name  2 prefix of job hashes  3 most ids that are listed
-- Answers {now in ms, {boot, its last beat in ms, ...}, ids that run, in line, that are held, asleep}. The ids stand in
-- one text each, one a line: as many answers would cost the reader more than everything else. An id with a line break
-- is no job's. Those that are held are among those asleep, too.
-- Where more wait and sleep than are listed, it answers {how many} and looks at none of them.
-- uses: switches running

local count = redis.call('LLEN', KEYS[1]) + math.max(redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[5]))
if count > tonumber(ARGV[3]) then
  return { count }
end
local boots = redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES')
local function lines(ids)
  return table.concat(ids, '\n')
end
return {
  now_ms(),
  boots,
  lines(running_ids(ARGV[1], ARGV[2], KEYS[3], boots)),
  lines(redis.call('LRANGE', KEYS[1], 0, -1)),
  lines(redis.call('ZRANGE', KEYS[5], 0, -1)),
  lines(redis.call('ZRANGE', KEYS[2], 0, -1)),
}
