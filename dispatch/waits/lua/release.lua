-- Forget a job's hold, and its claim if the job holds it.
--
-- KEYS  1 hold: wait:job:<job>  2 index: wait:held  3 claim: wait:key:<identity>, only of a job that has an identity
-- ARGV  1 job id
-- Answers nothing
--
-- May be repeated.

let_go()
