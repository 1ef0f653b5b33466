-- Purpose: read how background actions stand, at one instant. Whoever has the server may have written them.
-- KEYS: of each action its hash and the list of its rows.
-- ARGV: 1 the first row to answer, from 0  2 how many rows  3 how many bytes of one text to answer at most
-- Answers: {now in ms, {head, when it began, its last beat, how many rows there are, row, ...}, ...}; a head that is
--   missing or unreadable is ''.
local time = redis.call('TIME')
local first, count, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local answer = { tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) }

local function cut(text)
  return type(text) == 'string' and string.sub(text, 1, longest) or ''
end

for i = 1, #KEYS, 2 do
  local values = redis.pcall('HMGET', KEYS[i], 'head', 'started', 'beat')
  local length = redis.pcall('LLEN', KEYS[i + 1])
  local one = { cut(values[1]), cut(values[2]), cut(values[3]), type(length) == 'number' and length or 0 }
  if one[4] > 0 and count > 0 then
    for _, row in ipairs(redis.call('LRANGE', KEYS[i + 1], first, first + count - 1)) do
      table.insert(one, cut(row))
    end
  end
  table.insert(answer, one)
end
return answer
