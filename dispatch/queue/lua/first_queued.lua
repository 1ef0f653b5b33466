-- first queued: when some jobs were first queued, which no step of a job ever changes. Changes nothing.
--
-- KEYS  none: a job's hash is known by its id
-- ARGV  1 prefix of job hashes  2 ids, one a line
-- Answers one text: per id, in their order, a line with what the hash says (blank: nothing, or it is no hash).

local found = {}
for id in string.gmatch(ARGV[2], '[^\n]+') do
  local value = redis.pcall('HGET', ARGV[1] .. id, 'firstQueued')
  found[#found + 1] = type(value) == 'string' and string.match(value, '^%d+$') or ''
end
return table.concat(found, '\n')
