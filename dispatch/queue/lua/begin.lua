-- begin: in hand -> started, the step right before the container is created. Writes what RQ's prepare_execution and
-- prepare_job_execution write, and the container's name for `stop`. A job with a lease in the fleet has it for its
-- whole time from here on: it may have run out since it was asked for.
--
-- KEYS  1 job hash  2 taken list of this boot  3 pause:*  4 pause:<queue>  5 drain:<host>  6 execution hash
--       7 executions of the job  8 started registry  9 executions of RQ's worker  10 containers of the host
--       11... slots of the lease, in the order in which the job tries them, then those beyond the limit
-- ARGV  1 id  2 token  3 now (RQ's text)  4 now (epoch seconds)  5 RQ worker name  6 execution lifetime (s)
--       7 container name  8 what stands under it (JSON)
--       9 job id  10 claim  11 lifetime (ms)  12 how many of the slots are within the limit, all with a lease only
-- Answers 'done' | 'lost', or, and then the job is as it was: 'held' (a pause or drain holds) | 'unlisted' (what should
-- list the containers is something else) | 'denied' (others have as many slots as there are)
-- uses: switches owner execution kinds slots

local job, id, token = KEYS[1], ARGV[1], ARGV[2]
local has = owner(job, token)
if has == 'started' then
  return 'done'
elseif has ~= 'hand' then
  return 'lost'
end
local now = now_ms()
if holds(KEYS[3], now) or holds(KEYS[4], now) or holds(KEYS[5], now) then
  return 'held'
end

if not is_kind(KEYS[10], 'hash') then
  return 'unlisted'
end
if KEYS[11] and not take_slot({ unpack(KEYS, 11) }, tonumber(ARGV[12]), ARGV[9], ARGV[10], ARGV[11]) then
  return 'denied'
end

local execution = execution_of(token)
local member = id .. ':' .. execution
local ttl = tonumber(ARGV[6])
local seconds = math.floor(now / 1000)
redis.call('HSET', job, 'status', 'started', 'started_at', ARGV[3], 'last_heartbeat', ARGV[3], 'worker_name', ARGV[5])
redis.call('HDEL', job, 'reason', 'until', 'since', 'cause')
redis.call('PERSIST', job)
redis.call('LREM', KEYS[2], 1, id)
redis.call('HSET', KEYS[6], 'id', execution, 'job_id', id, 'created_at', ARGV[4], 'last_heartbeat', ARGV[4],
  'worker_name', ARGV[5])
redis.call('EXPIRE', KEYS[6], ttl)
redis.call('ZADD', KEYS[7], seconds + ttl + 60, execution)
redis.call('EXPIRE', KEYS[7], ttl + 60)
redis.call('ZADD', KEYS[8], seconds + ttl, member)
redis.call('SADD', KEYS[9], member)
redis.call('EXPIRE', KEYS[9], ttl + 60)
redis.call('HSET', KEYS[10], ARGV[7], ARGV[8])
return 'done'
