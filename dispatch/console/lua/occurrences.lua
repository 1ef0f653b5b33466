-- occurrences: how some jobs stand and what they ended with, at one instant. Changes nothing, and a key of a wrong type
-- costs one job.
--
-- ARGV  1 prefix of job hashes  2 prefix of results  3 how many fields  4... the fields, then the ids
-- Answers one JSON text: [[place of the id from 1, [value or false, ...], [field, value, ...] of the last result], ...],
--   only of ids that exist; {} for none. Values are cut to 300 bytes.

local fields, first = {}, 4 + tonumber(ARGV[3])
for i = 4, first - 1 do
  fields[#fields + 1] = ARGV[i]
end

local function cut(values)
  for i, value in ipairs(values) do
    values[i] = value and string.sub(value, 1, 300)
  end
  return values
end

local function last_result(id)
  local found = redis.pcall('XREVRANGE', ARGV[2] .. id, '+', '-', 'COUNT', 1)
  return found[1] and cut(found[1][2]) or {}
end

local rows = {}
for i = first, #ARGV do
  local id = ARGV[i]
  local found = redis.pcall('HMGET', ARGV[1] .. id, unpack(fields))
  if found[1] then
    rows[#rows + 1] = { i - first + 1, cut(found), last_result(id) }
  end
end
return cjson.encode(rows)
