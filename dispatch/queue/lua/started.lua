-- started: every job that runs, by the started registries of many queues. Changes nothing.
--
-- KEYS  per queue: started registry
-- ARGV  1 prefix of job hashes  2 most jobs per queue
-- Answers per queue: {{id, taker, host, attempt}, ...}, '' for a field that is not there; or the error of a registry
--   that cannot be read or has more.
-- uses: apart

local function rows_of(started)
  if redis.call('ZCARD', started) > tonumber(ARGV[2]) then
    error({ err = 'TOOMANY jobs in a started registry' })
  end
  local rows = {}
  for _, member in ipairs(redis.call('ZRANGE', started, 0, -1)) do
    local id = string.match(member, '^(.*):[^:]*$') or member
    local found = redis.pcall('HMGET', ARGV[1] .. id, 'status', 'taker', 'host', 'attempt')
    if found[1] == 'started' then
      rows[#rows + 1] = { id, found[2] or '', found[3] or '', found[4] or '' }
    end
  end
  return rows
end

local answers = {}
for i, started in ipairs(KEYS) do
  answers[i] = apart(rows_of, started)
end
return answers
