-- Purpose: a host says that it lives and what it is, unless another host has its name freshly.
-- KEYS: its row; the set of live names; the hash of known hosts; the set of known queues; its drain.
-- ARGV: 1 name  2 host-id  3 boot  4 lifetime of a row in ms  5 '1' at boot, when it gives way without a trace
--       6 started at (ms), '' = not yet known  7 for how long it has been up (ms)
--       8 how long a silent host stays known (ms)  9 how many known hosts to look at for that
--       10 prefix of pending records  11 prefix of containers  12 how many queues, then these
--       then fields and values of the row.
-- Answers: {started at, host-id of the other host or '', age of its beat in ms}. The other has the name when its row
--   is well formed and at most a lifetime old. An error when the set of live names is none; the row is written then.
local row, live, known, queues, drain = unpack(KEYS)
local name, host_id, boot, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local now = now_ms()
local started = tonumber(ARGV[6]) or now - tonumber(ARGV[7])

local function holder()
  local said = redis.pcall('HMGET', row, 'hostId', 'beatAt')
  local id, beat = said[1] or '', said[2] or ''
  if id == host_id or #id ~= 16 or not string.find(id, '^[0-9a-f]+$') or not string.find(beat, '^[0-9]+$') then
    return nil
  end
  local age = now - tonumber(beat)
  if math.abs(age) <= ttl then
    return id, math.max(0, age)
  end
end

-- What was removed first may be written again on a full server, and a host must not look dead because of that.
-- A list of known hosts or of queues that is none costs nobody a beat.
local function remember()
  redis.pcall('HDEL', known, host_id)
  redis.pcall('HSET', known, host_id, string.format('{"name":"%s","beat":%.0f}', name, now))
  local some = redis.pcall('HRANDFIELD', known, ARGV[9], 'WITHVALUES')
  for i = 1, #some, 2 do
    local read, said = pcall(cjson.decode, some[i + 1])
    local beat = read and type(said) == 'table' and said.beat
    local silent = type(beat) ~= 'number' or now - beat > tonumber(ARGV[8])
    if silent and redis.call('EXISTS', ARGV[10] .. some[i], ARGV[11] .. some[i]) == 0 then
      redis.pcall('HDEL', known, some[i])
    end
  end
end

local other, age = holder()
if not (other and ARGV[5] == '1') then
  remember()
end
if other then
  return {started, other, age}
end
redis.call('DEL', row)
local last_queue = 12 + tonumber(ARGV[12])
redis.call('HSET', row, 'beatAt', string.format('%.0f', now), 'startedAt', string.format('%.0f', started),
  'draining', tostring(holds(drain, now)), unpack(ARGV, last_queue + 1))
redis.call('PEXPIRE', row, ttl)
redis.pcall('SADD', queues, unpack(ARGV, 13, last_queue))
redis.call('SADD', live, name)
return {started, '', 0}
