-- Give back what a claim holds, and nothing that anybody else has taken meanwhile.
--
-- KEYS  slots
-- ARGV  1 the claim, as it was written
-- Answers how many slots are free by that
--
-- May be repeated.

local freed = 0
for _, key in ipairs(KEYS) do
  if claim_in(key) == ARGV[1] then
    freed = freed + redis.call('DEL', key)
  end
end
return freed
