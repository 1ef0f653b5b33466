-- Take one of the slots for a job in hand, or renew the one that it has.
--
-- KEYS  1 job hash  2... slots, in the order in which the job tries them, then those beyond the limit
-- ARGV  1 token of the pop  2 job id  3 the claim: `<worker>#<job id>#<token>`  4 lifetime (ms)
--       5 how many of the slots are within the limit
-- Answers 1, or 0: as many as may have one do, or the job is in another hand by now, or in none
--
-- May be repeated.

if redis.pcall('HGET', KEYS[1], 'taker') ~= ARGV[1] then
  return 0
end
return take_slot({ unpack(KEYS, 2) }, tonumber(ARGV[5]), ARGV[2], ARGV[3], ARGV[4]) and 1 or 0
