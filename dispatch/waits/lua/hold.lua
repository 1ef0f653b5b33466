-- Record that a job is held, and until when at least; the first record of a hold starts its clock.
--
-- KEYS  1 hold: wait:job:<job>  2 index: wait:held  3 claim: wait:key:<identity>, only of a job that has an identity
-- ARGV  1 job id  2 now (ms)  3 lifetime of hold, index and own claim (ms)  4 target  5 label  6 identity or ''
-- Answers since, checks, faults, throttles
--
-- May be repeated.

record()
return counters()
