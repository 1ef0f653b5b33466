-- Note that a record of the job that has spent a one-shot is written, or that a host's file says so.
--
-- KEYS  1 claim (see claim.lua)
-- ARGV  1 id of the job  2 `recorded`, or the field of the host  3 lifetime (ms)
-- Answers 1, or 0: the claim is another job's, or there is none
--
-- May be repeated.

if redis.pcall('HGET', KEYS[1], 'job') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
