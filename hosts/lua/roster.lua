-- Purpose: read the whole registry at one instant. Names without a row leave the list: a set cannot expire them.
-- KEYS: the set of live names; the hash of known hosts.
-- ARGV: 1 the prefix of rows  2 the prefix of drains  3 how many hosts to read at most (of more, any that many)
--       4 how many bytes of one text to answer at most  5 after how many bytes of rows, or of known, to read no more
--       then the names of the fields.
-- Answers: {now in ms, how many names there are, {row, ...}, {name that is drained, ...}, how many hosts are known,
--   {known, ...}}. A row is one text, because a reader takes long over thousands of small ones: the name, then the
--   fields' values, missing as '', each after a zero byte; instead of values 'wrong-type' when the key is no hash,
--   'unread' beyond the bytes. A known host is its id, a zero byte, its entry.
--   How many hosts are known is -1 when that key is no hash.
local now = now_ms()
local most, longest, bytes_left = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local fields = {unpack(ARGV, 6)}
local nothing = string.rep('\0', #fields - 1)

local function row(key)
  if bytes_left < 0 then
    return redis.call('EXISTS', key) == 1 and 'unread' or nil
  end
  local values = redis.pcall('HMGET', key, unpack(fields))
  if values.err then
    return 'wrong-type'
  end
  for i = 1, #fields do
    values[i] = values[i] or ''
  end
  local text = table.concat(values, '\0')
  if text == nothing and redis.call('EXISTS', key) == 0 then
    return nil
  end
  bytes_left = bytes_left - #text
  return text
end

local rows, names, drains = {}, {}, {}
for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[1], most)) do
  local text = row(ARGV[1] .. name)
  if text then
    table.insert(rows, string.sub(name .. '\0' .. text, 1, longest))
    table.insert(names, name)
    table.insert(drains, ARGV[2] .. name)
  else
    -- A server that takes no writes now must not keep anybody from reading.
    redis.pcall('SREM', KEYS[1], name)
  end
end

local drained = {}
if #drains > 0 and redis.call('EXISTS', unpack(drains)) > 0 then
  for i, name in ipairs(names) do
    if holds(drains[i], now) then
      table.insert(drained, name)
    end
  end
end

local ids, known = redis.pcall('HRANDFIELD', KEYS[2], most), {}
bytes_left = tonumber(ARGV[5])
for i = 1, #ids do
  if bytes_left >= 0 then
    local entry = redis.call('HGET', KEYS[2], ids[i])
    bytes_left = bytes_left - #entry
    table.insert(known, string.sub(ids[i] .. '\0' .. entry, 1, longest))
  end
end
local how_many = ids.err and -1 or redis.call('HLEN', KEYS[2])
return {now, redis.call('SCARD', KEYS[1]), rows, drained, how_many, known}
