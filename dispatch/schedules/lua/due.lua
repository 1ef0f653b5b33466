-- due: the schedules of some queues' tables whose next instant has come, the one that came first foremost. Changes
-- nothing.
--
-- KEYS  per queue: upcoming, definitions, notes of what was acted on
-- ARGV  1 now (ms)  2 most per queue  3 most bytes per queue (the one that exceeds them is still answered)
--       4 longest definition  5... per queue: how many of the foremost to leave out
-- Answers per queue {id, score, definition ('' = none, or too long), note or '', ...}, or the error of a key of
--       another type
-- uses: apart

local function due(at)
  local answer, bytes = {}, 0
  local found = redis.call('ZRANGEBYSCORE', KEYS[at], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', ARGV[5 + (at - 1) / 3],
    ARGV[2])
  for i = 1, #found, 2 do
    local id, size = found[i], redis.call('HSTRLEN', KEYS[at + 1], found[i])
    local fits = size <= tonumber(ARGV[4])
    local values = { id, found[i + 1], fits and redis.call('HGET', KEYS[at + 1], id) or '',
      redis.call('HGET', KEYS[at + 2], id) or '' }
    for _, value in ipairs(values) do
      answer[#answer + 1] = value
      bytes = bytes + #value
    end
    if bytes > tonumber(ARGV[3]) then
      break
    end
  end
  return answer
end

local answers = {}
for at = 1, #KEYS, 3 do
  answers[#answers + 1] = apart(due, at)
end
return answers
