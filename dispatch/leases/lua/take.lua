-- Take one of the slots for a job in hand, or renew the one that it has.
--
-- KEYS  1 job hash  2... slots, in the order in which the job tries them
-- ARGV  1 token of the pop  2 job id  3 the claim: `<worker>#<job id>#<token>`  4 lifetime (ms)
-- Answers 1, or 0: no slot is free, or the job is in another hand by now, or in none
--
-- May be repeated. A slot that names the job is the job's, whoever wrote it: only one pop has it in hand. What would
-- stand for ever is no lease and gets the lifetime of one.

if redis.pcall('HGET', KEYS[1], 'taker') ~= ARGV[1] then
  return 0
end

local own, free
for i = 2, #KEYS do
  local claim = claim_in(KEYS[i])
  if not claim then
    free = free or KEYS[i]
  elseif string.match(claim, '^[^#]*#(.*)#[^#]*$') ~= ARGV[2] then
    if redis.call('PTTL', KEYS[i]) == -1 then
      redis.call('PEXPIRE', KEYS[i], ARGV[4])
    end
  elseif own then
    redis.call('DEL', KEYS[i])
  else
    own = KEYS[i]
  end
end

local slot = own or free
if not slot then
  return 0
end
redis.call('SET', slot, ARGV[3], 'PX', ARGV[4])
return 1
