-- Claim a one-shot for a job, unless another one has it.
--
-- KEYS  1 claim: hash of `job` (the id of the job that spends it), of `recorded` once a record of that job is
--         written, and of each host that noted that in its file, `spent:<host-id>`, or could not note it,
--         `failed:<host-id>` (all the same id)
-- ARGV  1 id of the job  2 id of the job whose claim it may take over, empty for none
--       3 field of this host  4 lifetime (ms)  5 the most bytes that an id has
-- Answers {id of the job that has it, what this host's field says (empty: nothing)}
--
-- May be repeated. A key of another type, or with an id that is none, is nobody's claim.

local length = redis.pcall('HSTRLEN', KEYS[1], 'job')
local holder = false
if type(length) == 'number' and length > 0 and length <= tonumber(ARGV[5]) then
  holder = redis.call('HGET', KEYS[1], 'job')
end
if holder and holder ~= ARGV[1] and holder ~= ARGV[2] then
  return { holder, redis.call('HGET', KEYS[1], ARGV[3]) or '' }
end
if holder ~= ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'job', ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return { ARGV[1], '' }
