-- Give back what a claim holds, and nothing that anybody else has taken meanwhile.
--
-- KEYS  slots
-- ARGV  1 the claim, as it was written  2 the claim of the job that is to have it next, or ''  3 for how long (ms)
-- Answers how many slots it has left
--
-- May be repeated.

local left = 0
for _, key in ipairs(KEYS) do
  if claim_in(key) == ARGV[1] then
    -- A full server refuses to note who is next, but not to free it.
    if ARGV[2] == '' or redis.pcall('SET', key, ARGV[2], 'PX', ARGV[3]).err then
      redis.call('DEL', key)
    end
    left = left + 1
  end
end
return left
