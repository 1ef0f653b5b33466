-- Move pending records of hosts that have been silent for long to this host's list, oldest first, a step at a time.
--
-- KEYS[1]  the known hosts: known:hosts, host-id -> JSON {name, beat (ms of this server's clock)}
-- KEYS[2]  pending records of this host
-- ARGV     1 this host's id  2 silence after which a host has vanished, ms  3 prefix of a host's pending records
--          4 most records to move  5 bytes of records after which no further one is moved
--
-- Answers {host-id, name, how many were moved} for each host that any were taken from; the name as it stands there.
--
-- Ids and values are what hosts wrote: what is no id of 16 hex digits, or no such value, is nobody's list, and known
-- hosts of another type are none. A record is in one of the two lists at any instant; an old host that returns
-- meanwhile finds its list shorter.

local own, silence, prefix = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local most, bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function read(value)
  local is_json, host = pcall(cjson.decode, value)
  if is_json and type(host) == 'table' and type(host.beat) == 'number' then
    return host.beat, type(host.name) == 'string' and host.name or ''
  end
end

local function move(from)
  local moved = 0
  while most > 0 and bytes > 0 do
    local record = redis.call('LMOVE', from, KEYS[2], 'LEFT', 'RIGHT')
    if not record then
      break
    end
    moved, most, bytes = moved + 1, most - 1, bytes - #record
  end
  return moved
end

local answer = {}
local hosts = redis.pcall('HGETALL', KEYS[1])
for i = 1, #hosts, 2 do
  local id = hosts[i]
  local beat, name = read(hosts[i + 1])
  local from = prefix .. id
  if beat and id ~= own and #id == 16 and not string.find(id, '[^0-9a-f]') and now - beat > silence
    and redis.call('TYPE', from).ok == 'list' then
    local moved = move(from)
    if moved > 0 then
      table.insert(answer, {id, name, moved})
    end
  end
end
return answer
