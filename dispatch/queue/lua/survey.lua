-- survey: what of one queue has an owner that may be gone. It decides nothing about a job: put_back and stall look
-- again. An owner of a started job that nobody knows is taken to have spoken now, so that a lost set of takers fails
-- no live job; entries of the started registry whose job has ended are cleared. A key of another type is passed over:
-- without takers nobody can be judged, without the registry only what is in hand.
--
-- KEYS  1 takers  2 started registry
-- ARGV  1 queue name  2 prefix of job hashes  3 own boot  4 prefix of this host's boots if its older ones are
--       condemned, else ''  5, 6 silence (ms) that condemns what is in hand, what is started  7 most per list
--       8 silence (ms) after which an empty-handed boot is forgotten
-- Answers {now, {boot, token or '', id, ...}, {boot, token, id, ...}, how many keys were passed over}: in hand, then
-- started
-- uses: switches owner kinds

local takers, wip, own, prefix = KEYS[1], KEYS[2], ARGV[3], ARGV[4]
local now = now_ms()

local function job_fields(id, ...)
  local found = redis.pcall('HMGET', ARGV[2] .. id, ...)
  return found.err and {} or found
end

local function is_condemned(boot, age, silence)
  return boot == own or age > silence or (prefix ~= '' and string.sub(boot, 1, #prefix) == prefix)
end

local passed_over = 0
local function can_read(key, kind)
  if is_kind(key, kind) then
    return true
  end
  passed_over = passed_over + 1
  return false
end

if not can_read(takers, 'zset') then
  return { now, {}, {}, passed_over }
end

local in_hand, started = {}, {}
local function add(list, ...)
  for _, value in ipairs({ ... }) do
    list[#list + 1] = value
  end
end

local owns = {}
local over = { finished = true, failed = true, stopped = true, canceled = true }
local knows_owners = can_read(wip, 'zset')
for _, member in ipairs(knows_owners and redis.call('ZRANGE', wip, 0, -1) or {}) do
  local id = string.match(member, '^(.*):[^:]*$') or member
  local found = job_fields(id, 'status', 'taker')
  if not found[1] or over[found[1]] then
    redis.call('ZREM', wip, member)
  elseif found[1] == 'started' and found[2] and #started < ARGV[7] * 3 then
    local boot = boot_of(found[2])
    owns[boot] = true
    local beat = redis.call('ZSCORE', takers, boot)
    if not beat then
      -- A full server refuses it; then the boot is unknown next time too.
      redis.pcall('ZADD', takers, now, boot)
    end
    if is_condemned(boot, beat and now - beat or 0, tonumber(ARGV[6])) then
      add(started, boot, found[2], id)
    end
  end
end

local known = redis.call('ZRANGE', takers, 0, -1, 'WITHSCORES')
for i = 1, #known, 2 do
  local boot, age = known[i], now - known[i + 1]
  if is_condemned(boot, age, tonumber(ARGV[5])) then
    local taken = ARGV[1] .. ':taken:' .. boot
    local ids = can_read(taken, 'list') and redis.call('LRANGE', taken, -ARGV[7], -1)
    for _, id in ipairs(ids or {}) do
      add(in_hand, boot, job_fields(id, 'taker')[1] or '', id)
    end
    local is_empty_handed = ids and #ids == 0 and knows_owners and not owns[boot]
    if is_empty_handed and boot ~= own and age > tonumber(ARGV[8]) then
      redis.call('ZREM', takers, boot)
    end
  end
end
return { now, in_hand, started, passed_over }
