-- stall: started, its owner gone -> failed. It may have spent, so it is never run again. Any worker may call it; only
-- the one that is answered 'done' has recorded it.
--
-- KEYS  1 job hash  2 takers  3 failed registry  4 results of the job  5 pending records of the sweeping host
--       6 execution hash  7 executions of the job  8 started registry  9 executions of the worker that had it
-- ARGV  1 id  2 boot  3 token seen  4 silence that condemns (ms), or -1 to ask nobody  5 now (RQ's text)
--       6 now (epoch seconds)  7 RQ name of the worker that had it  8 default lifetime (s)
--       9, 10 name and value of the result's field  11 record
-- Answers 'done' | 'alive' (its owner spoke) | 'lost' (somebody else decided)
-- uses: switches owner finish execution

local job, id, token = KEYS[1], ARGV[1], ARGV[3]
if owner(job, token) ~= 'started' then
  return 'lost'
end
local now = now_ms()
local silence = tonumber(ARGV[4])
local beat = silence >= 0 and redis.call('ZSCORE', KEYS[2], ARGV[2])
if beat and now - beat <= silence then
  return 'alive'
end
can_finish(KEYS[4], KEYS[3], KEYS[5])
local started = end_execution({
  id = id, token = token, execution = KEYS[6], executions = KEYS[7], wip = KEYS[8], worker_executions = KEYS[9],
})
redis.call('DEL', KEYS[7])
-- No `left`: the old owner's own finish, coming late, must be told that it lost.
finish({
  job = job, id = id, now = now, status = 'failed', ttl = ARGV[8], registry = KEYS[3], results = KEYS[4],
  worker = ARGV[7], payload = { ARGV[9], ARGV[10] }, execution = execution_of(token), started = started,
  ended_at = ARGV[5], ended = ARGV[6], records = KEYS[5], record = ARGV[11],
})
return 'done'
