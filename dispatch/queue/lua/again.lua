-- again: in hand or started -> scheduled, one attempt spent (infra, Q 2.4). This attempt's record is pushed.
--
-- KEYS  1 job hash  2 taken list of this boot  3 scheduled set  4 waiters for a retry  5 set of RQ's queues
--       6 execution hash  7 executions of the job  8 started registry  9 executions of RQ's worker
--       10 RQ's worker hash  11 pending records  12 containers of the host
-- ARGV  1 id  2 token  3 back-off (ms from now)  4 queue list (as RQ lists it in KEYS[5])  5 now (RQ's text)
--       6 now (epoch seconds)  7 number of the next attempt  8 attemptLog (JSON)  9 record
--       10 name of the container that is gone, or ''
-- Answers 'done' | 'lost'
-- uses: switches owner waiters execution

local job, id, token = KEYS[1], ARGV[1], ARGV[2]
local has = owner(job, token)
if has == 'left' then
  return 'done'
elseif not has then
  return 'lost'
end
redis.call('LREM', KEYS[2], 1, id)
if ARGV[10] ~= '' then
  redis.pcall('HDEL', KEYS[12], ARGV[10])
end
if has == 'started' then
  local started = end_execution({
    id = id, token = token, execution = KEYS[6], executions = KEYS[7], wip = KEYS[8], worker_executions = KEYS[9],
  })
  count_work(KEYS[10], 'failed_job_count', started, ARGV[6])
end
local now = now_ms()
sleep({
  job = job, id = id, token = token, now = now, ['until'] = now + tonumber(ARGV[3]), reason = 'retry', scope = '',
  scheduled = KEYS[3], waiters = KEYS[4], queues = KEYS[5], queue = ARGV[4],
})
redis.call('HSET', job, 'attempt', ARGV[7], 'attemptLog', ARGV[8], 'ended_at', ARGV[5])
redis.call('RPUSH', KEYS[11], ARGV[9])
return 'done'
