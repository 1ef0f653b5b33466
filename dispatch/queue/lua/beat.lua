-- beat: this boot lives. Writes the beat of every queue it takes from, and keeps what RQ's tools show of its
-- executions from expiring. An execution that has gone is not made again. Takers of another type cost no other queue
-- its beat, and a key of an execution none at all.
--
-- KEYS  the takers of each queue, then per execution: execution hash, executions of its job, started registry
-- ARGV  1 boot  2 how many takers there are  3 execution lifetime (s)  4 now (epoch seconds)
--       5... per execution: id of its job, id of the execution
-- Answers {now in ms, the places of the takers that took no beat, from 1...}
-- uses: switches kinds

local now = now_ms()
local takers = tonumber(ARGV[2])
local answer = { now }
for i = 1, takers do
  if is_kind(KEYS[i], 'zset') then
    -- A full server refuses ZADD as a script's first write; a host must not look dead because of that.
    redis.call('ZREM', KEYS[i], ARGV[1])
    redis.call('ZADD', KEYS[i], now, ARGV[1])
  else
    answer[#answer + 1] = i
  end
end
local ttl = tonumber(ARGV[3])
local expires = math.floor(now / 1000) + ttl
for i = takers + 1, #KEYS, 3 do
  local at = 5 + (i - takers - 1) / 3 * 2
  local job, execution = ARGV[at], ARGV[at + 1]
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.pcall('HSET', KEYS[i], 'last_heartbeat', ARGV[4])
    redis.call('EXPIRE', KEYS[i], ttl)
    redis.pcall('ZADD', KEYS[i + 1], 'XX', expires + 60, execution)
    redis.call('EXPIRE', KEYS[i + 1], ttl + 60)
    redis.pcall('ZADD', KEYS[i + 2], 'XX', expires, job .. ':' .. execution)
  end
end
return answer
