-- Purpose: read the whole registry at one instant. Names without a row leave the list: a set cannot expire them.
-- KEYS: the set of live names; the hash of known hosts.
-- ARGV: the prefix of rows; the prefix of drains; how many hosts to read at most (of more, any that many); how many
--       bytes of one text to answer at most; then the names of the fields.
-- Answers: {now in ms, how many names there are, {name, row, …}, how many hosts are known, {host-id, entry, …}}.
--   A row is one text, because a reader takes long over thousands of small ones: '1' or '0' (a drain holds or not)
--   and the fields' values, missing as '', each after a zero byte; '' when the key is no hash.
--   Both about known hosts are nil when that key is no hash.
local now = now_ms()
local most, longest = tonumber(ARGV[3]), tonumber(ARGV[4])
local fields = {unpack(ARGV, 5)}

local function row(key, name)
  local values = redis.pcall('HMGET', key, unpack(fields))
  if values.err then
    return ''
  end
  for i = 1, #fields do
    values[i] = values[i] or ''
  end
  local drained = holds(ARGV[2] .. name, now) and '1' or '0'
  return string.sub(drained .. '\0' .. table.concat(values, '\0'), 1, longest)
end

local rows = {}
for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[1], most)) do
  local key = ARGV[1] .. name
  if redis.call('EXISTS', key) == 1 then
    table.insert(rows, string.sub(name, 1, longest))
    table.insert(rows, row(key, name))
  else
    -- A server that takes no writes now must not keep anybody from reading.
    redis.pcall('SREM', KEYS[1], name)
  end
end

local known = redis.pcall('HRANDFIELD', KEYS[2], most, 'WITHVALUES')
if known.err then
  return {now, redis.call('SCARD', KEYS[1]), rows, false, false}
end
for i = 1, #known do
  known[i] = string.sub(known[i], 1, longest)
end
return {now, redis.call('SCARD', KEYS[1]), rows, redis.call('HLEN', KEYS[2]), known}
