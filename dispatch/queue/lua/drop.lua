-- drop: queued, scheduled or in hand -> removed, for a cancel. Nothing is recorded: it never ran. Who has it in hand
-- loses it at its next transition. The id is free again.
--
-- KEYS  1 job hash  2 queue list  3 scheduled set  4 results of the job  5 executions of the job
-- ARGV  1 id  2 queue name
-- Answers 'dropped' | 'started' (it runs: stop it instead) | 'over' (it has ended) | 'absent'
--       | 'moved' (it is on another queue by now; nothing changed)
--
-- The taken list of whoever has it is found through the job's token.
-- uses: owner waiters

local job, id = KEYS[1], ARGV[1]
local found = redis.pcall('HMGET', job, 'status', 'taker', 'reason', 'scope', 'origin')
if found.err or not found[1] then
  return 'absent'
elseif found[1] == 'started' then
  return 'started'
elseif found[5] ~= ARGV[2] then
  return 'moved'
elseif found[1] == 'queued' then
  redis.call('LREM', KEYS[2], 0, id)
  if found[2] then
    redis.call('LREM', ARGV[2] .. ':taken:' .. boot_of(found[2]), 1, id)
  end
elseif found[1] == 'scheduled' then
  redis.call('ZREM', KEYS[3], id)
else
  return 'over'
end
leave_waiters(ARGV[2], id, found[3], found[4])
redis.call('DEL', job, KEYS[4], KEYS[5])
return 'dropped'
