-- fire: one due instant of one schedule becomes a job at the back of the queue, and the schedule goes on to its next
-- instant, in the same step. The job is written as RQ's unique enqueue writes it: an id that exists is not enqueued
-- again, and neither is an instant that was dealt with somewhere in the fleet, whose id may be forgotten by now.
-- While the occurrence before still waits on this queue nothing is enqueued: nothing piles up.
--
-- KEYS  1 upcoming  2 definitions  3 notes of what was acted on, of one table  4 what occurred, of the schedule
--       5 job hash  6 queue list  7 set of RQ's queues  8 known queues  9 hash of the occurrence before (or 5 again)
-- ARGV  1 schedule id  2, 3 its next instant (score) and definition as they were read  4 new next (ms), '' = none
--       5 queue name  6 RQ id of the job  7 the due instant (ms)  8 the earliest instant that it stands for (ms)
--       9 whether it follows the one before: 1 or 0  10 the longest gap in one stretch (ms)  11 lifetime of 4 (ms)
--       12, 13, 14 what to note if it is enqueued, if it exists, if the one before waits  15 now (ms)
--       16 until when (ms) something may have occurred already  17... names and values of the job's fields
-- Answers {'enqueued' | 'exists' | 'waiting' (all three went on) | 'changed' (somebody was faster; nothing changed),
--       1 if key 4 held what cannot be, and counted for nothing, else 0}

-- So many stretches are kept apart, and no calendar goes further (ms).
local MOST, LATEST = 8, 1e15

local id, instant = ARGV[1], tonumber(ARGV[7])

-- What has a wrong type fails here, before anything has changed.
redis.call('LLEN', KEYS[6])
redis.call('SCARD', KEYS[7])
redis.call('SCARD', KEYS[8])
local next_ms = redis.call('ZSCORE', KEYS[1], id)
if next_ms ~= ARGV[2] or redis.call('HGET', KEYS[2], id) ~= ARGV[3] then
  return { 'changed', 0 }
end

-- Instants that were dealt with, as stretches in their order. What lies between two was passed over, and is dealt with
-- as well, unless the second begins after now: then a clock was ahead, which says nothing of the gap before it.
local text, now = redis.call('GETRANGE', KEYS[4], 0, 300), tonumber(ARGV[15])
local known, ahead, is_sound = {}, {}, true
for part in string.gmatch(text, '[^,]+') do
  local first, last = string.match(part, '^(%d+)-(%d+)$')
  first, last = tonumber(first), tonumber(last)
  -- Ends in times to come, as a clock of another world or a hand writes them, would silence the schedule until then.
  is_sound = is_sound and last and last < LATEST and (first > now or last <= tonumber(ARGV[16]))
  if is_sound then
    table.insert(first > now and ahead or known, { first, last })
  end
end
if not is_sound then
  known, ahead = {}, {}
end

local function waits()
  if KEYS[9] == KEYS[5] then
    return false
  end
  local found = redis.pcall('HMGET', KEYS[9], 'status', 'origin')
  local status = not found.err and found[2] == ARGV[5] and found[1]
  return status == 'queued' or status == 'scheduled' or status == 'deferred'
end

-- A gap before now tells nothing but to a clock that goes back over it: the one furthest back goes first. Of those to
-- come, the ones of a clock that was ahead are larger than those of a worker that was slow.
local function close_a_gap()
  local stretches, place, smallest = known, 2, nil
  if not known[2] then
    stretches = ahead
    for i = 2, #ahead do
      local gap = ahead[i][1] - ahead[i - 1][2]
      if not smallest or gap < smallest then
        smallest, place = gap, i
      end
    end
  end
  stretches[place - 1][2] = stretches[place][2]
  table.remove(stretches, place)
end

local newest = known[#known]
local is_dealt_with = newest and known[1][1] <= instant and instant <= newest[2]
local what = 'enqueued'
if is_dealt_with or redis.call('EXISTS', KEYS[5]) == 1 then
  what = 'exists'
elseif waits() then
  what = 'waiting'
end

-- First what a full server, or a key of another type, refuses: then nothing has changed.
redis.call('HSET', KEYS[3], id, ARGV[what == 'enqueued' and 12 or what == 'exists' and 13 or 14])
if what ~= 'waiting' and not is_dealt_with then
  local follows = ARGV[9] == '1'
  -- A far gap begins anew: a clock that was years ahead for a minute must not have dealt with those years.
  if not (newest and known[1][1] <= instant and (follows or instant - newest[2] <= tonumber(ARGV[10]))) then
    local earliest = tonumber(ARGV[8])
    known = { { earliest, follows and instant or earliest - 1 } }
  end
  if follows then
    known[#known][2] = instant
  else
    table.insert(known, { instant, instant })
  end
  while #known + #ahead > MOST do
    close_a_gap()
  end
  local parts = {}
  for _, stretches in ipairs({ known, ahead }) do
    for _, stretch in ipairs(stretches) do
      table.insert(parts, string.format('%d-%d', stretch[1], stretch[2]))
    end
  end
  redis.call('SET', KEYS[4], table.concat(parts, ','), 'PX', ARGV[11])
elseif not is_sound then
  redis.call('DEL', KEYS[4])
end
if what == 'enqueued' then
  redis.call('SADD', KEYS[8], ARGV[5])
  redis.call('SADD', KEYS[7], KEYS[6])
  redis.call('HSET', KEYS[5], unpack(ARGV, 17))
  redis.call('RPUSH', KEYS[6], ARGV[6])
end
if ARGV[4] == '' then
  redis.call('ZREM', KEYS[1], id)
else
  redis.call('ZADD', KEYS[1], ARGV[4], id)
end
return { what, is_sound and 0 or 1 }
