-- Take members out of the mirror's index whose body has gone; one that was written meanwhile stays.
--
-- KEYS[1]   the index: runs:index
-- KEYS[2..] bodies that were not there
-- ARGV[1]   prefix of a body's key
-- Answers how many members were taken out.

local pruned = 0
for i = 2, #KEYS do
  if redis.call('TYPE', KEYS[i]).ok ~= 'string' then
    pruned = pruned + redis.call('ZREM', KEYS[1], string.sub(KEYS[i], #ARGV[1] + 1))
  end
end
return pruned
