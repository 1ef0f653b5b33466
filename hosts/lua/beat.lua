-- Purpose: a host says that it lives and what it is, unless another host has its name freshly.
-- KEYS: its row; the set of live names; the hash of known hosts; the set of known queues; its drain.
-- ARGV: 1 name  2 host-id  3 boot  4 lifetime of a row in ms  5 '1' at boot, when it gives way without a trace
--       6 started at (ms), '' = not yet known  7 for how long it has been up (ms)
--       8 how long a silent host stays known (ms)  9 how many known hosts to look at for that
--       10 prefix of pending records  11 prefix of containers
--       12 when our last answered beat was (ms), '' = never  13 the other boot of this host-id that stands, or ''
--       14 how many queues, then these
--       then fields and values of the row.
-- Answers: {started at, host-id of the other host or '', age of its beat in ms, now in ms, other boot or ''}. The other
--   host has the name when its row is well formed and at most a lifetime old. The other boot is one of our own host-id
--   that beat after our last beat. An error when the set of live names is none; the row is written then.
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

-- Only a beat after ours: what our predecessor left behind is no sign of life.
local function other_boot()
  local since = tonumber(ARGV[12])
  local entry = since and redis.pcall('HGET', known, host_id)
  local read, said = pcall(cjson.decode, type(entry) == 'string' and entry or '')
  if not read or type(said) ~= 'table' or type(said.boot) ~= 'string' or type(said.beat) ~= 'number' then
    return ''
  end
  local is_ours = string.sub(said.boot, 1, #host_id + 1) == host_id .. '-'
    and string.find(string.sub(said.boot, #host_id + 2), '^[0-9a-f]+$') and #said.boot == #boot
  return is_ours and said.boot ~= boot and said.beat >= since and said.beat <= now and said.boot or ''
end

-- What was removed first may be written again on a full server, and a host must not look dead because of that.
-- A list of known hosts or of queues that is none costs nobody a beat.
local function remember(rival)
  redis.pcall('HDEL', known, host_id)
  local told = rival == '' and '' or string.format(',"otherBoot":"%s"', rival)
  redis.pcall('HSET', known, host_id, string.format('{"name":"%s","beat":%.0f,"boot":"%s"%s}', name, now, boot, told))
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
local rival = other_boot()
if not (other and ARGV[5] == '1') then
  remember(rival ~= '' and rival or ARGV[13])
end
if other then
  return {started, other, age, now, rival}
end
redis.call('DEL', row)
local last_queue = 14 + tonumber(ARGV[14])
redis.call('HSET', row, 'beatAt', string.format('%.0f', now), 'startedAt', string.format('%.0f', started),
  'draining', tostring(holds(drain, now)), unpack(ARGV, last_queue + 1))
redis.call('PEXPIRE', row, ttl)
redis.pcall('SADD', queues, unpack(ARGV, 15, last_queue))
redis.call('SADD', live, name)
return {started, '', 0, now, rival}
