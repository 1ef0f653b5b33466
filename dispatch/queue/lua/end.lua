-- end: started -> finished or failed, and in hand -> failed (the last attempt could not start, or a bug of ours).
-- The record is pushed in the same step. `containers` loses its entry only if the engine said that it is gone.
--
-- KEYS  1 job hash  2 taken list of this boot  3 finished or failed registry  4 results of the job
--       5 pending records  6 execution hash  7 executions of the job  8 started registry
--       9 executions of RQ's worker  10 RQ's worker hash  11 containers of the host
-- ARGV  1 id  2 token  3 now (RQ's text)  4 now (epoch seconds)  5 RQ worker name  6 default lifetime (s)
--       7, 8 name and value of the result's field  9 record  10 'finished' or 'failed'
--       11 name of the container that is gone, or ''
-- Answers 'done' | 'lost'
-- uses: switches owner finish execution

local job, id, token, status = KEYS[1], ARGV[1], ARGV[2], ARGV[10]
local has = owner(job, token)
if has == 'left' then
  return 'done'
elseif has ~= 'started' and not (has == 'hand' and status == 'failed') then
  return 'lost'
end
can_finish(KEYS[4], KEYS[3], KEYS[5])
redis.call('LREM', KEYS[2], 1, id)
if ARGV[11] ~= '' then
  redis.pcall('HDEL', KEYS[11], ARGV[11])
end
local execution, started
if has == 'started' then
  execution = execution_of(token)
  started = end_execution({
    id = id, token = token, execution = KEYS[6], executions = KEYS[7], wip = KEYS[8], worker_executions = KEYS[9],
  })
  count_work(KEYS[10], status == 'failed' and 'failed_job_count' or 'successful_job_count', started, ARGV[4])
end
finish({
  job = job, id = id, now = now_ms(), status = status, ttl = ARGV[6], registry = KEYS[3], results = KEYS[4],
  worker = ARGV[5], payload = { ARGV[7], ARGV[8] }, execution = execution, started = started, ended_at = ARGV[3],
  ended = ARGV[4], left = token, records = KEYS[5], record = ARGV[9],
})
return 'done'
