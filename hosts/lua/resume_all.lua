-- Purpose: end every pause and take back every request to stop. Drains stay: they belong to one host's upkeep.
-- KEYS: the set of known queues; the fleet's pause; then keys of stop requests.
-- ARGV: the prefix of a queue's pause key; then names of queues beside the known ones.
-- Answers: {the scopes whose pause was there, '*' for the fleet; of each request that was taken back which it is, from 1}.
-- The pause keys of known queues are named inside, so that a pause that comes in just before is ended as well.
local ended, taken = {}, {}
local function resume(key, scope)
  if redis.call('DEL', key) == 1 then
    table.insert(ended, scope)
  end
end
resume(KEYS[2], '*')
local known = redis.pcall('SMEMBERS', KEYS[1])
for _, queue in ipairs(known.err and {} or known) do
  resume(ARGV[1] .. queue, queue)
end
for i = 2, #ARGV do
  resume(ARGV[1] .. ARGV[i], ARGV[i])
end
for i = 3, #KEYS do
  if redis.call('DEL', KEYS[i]) == 1 then
    table.insert(taken, i - 2)
  end
end
return {ended, taken}
