-- drop: queued, scheduled or in hand -> removed, for a cancel: nothing is recorded, it never ran, and its id is free
-- again. With an attempt behind it -> finished (policy), with a record pushed: the one there says that more is to come.
-- Who has it in hand loses it at its next transition.
--
-- KEYS  1 job hash  2 queue list  3 scheduled set  4 results of the job  5 executions of the job
--       6 finished registry  7 pending records of the host that writes the record
-- ARGV  1 id  2 queue name  3, 4 `attempt` and `ended_at` of the hash as they were read  5 record, or '' (it never ran)
--       6 now (RQ's text)  7 now (epoch seconds)  8 default lifetime (s)  9, 10 name and value of the result's field
-- Answers 'dropped' | 'started' (it runs: stop it instead) | 'over' (it has ended) | 'absent'
--       | 'changed' (it is on another queue by now, or has had another attempt; nothing changed)
--
-- The taken list of whoever has it is found through the job's token.
-- uses: switches owner waiters finish

local job, id, name, record = KEYS[1], ARGV[1], ARGV[2], ARGV[5]
local found = redis.pcall('HMGET', job, 'status', 'taker', 'reason', 'scope', 'left', 'origin', 'attempt', 'ended_at')
if found.err or not found[1] then
  return 'absent'
elseif found[1] == 'started' then
  return 'started'
elseif found[1] ~= 'queued' and found[1] ~= 'scheduled' then
  return 'over'
elseif found[6] ~= name or (found[7] or '') ~= ARGV[3] or (found[8] or '') ~= ARGV[4] then
  return 'changed'
end
if record ~= '' then
  can_finish(KEYS[4], KEYS[6], KEYS[7])
end
if found[1] == 'scheduled' then
  redis.call('ZREM', KEYS[3], id)
else
  redis.call('LREM', KEYS[2], 0, id)
  if found[2] then
    redis.call('LREM', name .. ':taken:' .. boot_of(found[2]), 1, id)
  end
end
leave_waiters(name, id, found[3], found[4])
redis.call('DEL', KEYS[5])
if record == '' then
  redis.call('DEL', job, KEYS[4])
else
  -- `left` stays: whoever repeats the transition by which it came to wait is still told that it landed.
  finish({
    job = job, id = id, now = now_ms(), status = 'finished', ttl = ARGV[8], registry = KEYS[6], results = KEYS[4],
    worker = '', payload = { ARGV[9], ARGV[10] }, ended_at = ARGV[6], ended = ARGV[7], left = found[5],
    records = KEYS[7], record = record,
  })
end
return 'dropped'
