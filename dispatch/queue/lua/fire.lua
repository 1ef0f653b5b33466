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

local id, instant = ARGV[1], tonumber(ARGV[7])

-- What has a wrong type fails here, before anything has changed.
redis.call('LLEN', KEYS[6])
redis.call('SCARD', KEYS[7])
redis.call('SCARD', KEYS[8])
local next_ms = redis.call('ZSCORE', KEYS[1], id)
if next_ms ~= ARGV[2] or redis.call('HGET', KEYS[2], id) ~= ARGV[3] then
  return { 'changed', 0 }
end

-- The stretch of instants that were dealt with, and the end of it that came after a gap: instants that were passed
-- over are dealt with, too. Each is two numbers, or nothing.
local text = redis.call('GETRANGE', KEYS[4], 0, 80)
local function stretches()
  local from, to, after_gap = string.match(text, '^(%d+)-(%d+)(.*)$')
  local first, last = string.match(after_gap or '', '^,(%d+)-(%d+)$')
  return tonumber(from), tonumber(to), tonumber(first), tonumber(last)
end

local function waits()
  if KEYS[9] == KEYS[5] then
    return false
  end
  local found = redis.pcall('HMGET', KEYS[9], 'status', 'origin')
  local status = not found.err and found[2] == ARGV[5] and found[1]
  return status == 'queued' or status == 'scheduled' or status == 'deferred'
end

local from, to, first, last = stretches()
-- What begins after now was acted on by a clock that was ahead: it says nothing of the gap before it.
local is_ahead = first and first > tonumber(ARGV[15])
-- Ends in times to come, as a clock of another world or a hand writes them, would silence the schedule until then.
local is_sound = text == '' or (from and (is_ahead and to or last or to) <= tonumber(ARGV[16]))
if not is_sound then
  from, to, first, last, is_ahead = nil, nil, nil, nil, nil
end
local is_dealt_with = from and from <= instant and instant <= (not is_ahead and last or to)
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
  local known_to = not is_ahead and last or to
  -- A far gap begins a new stretch: a clock that was years ahead for a minute must not have dealt with those years.
  if not (from and from <= instant and (follows or instant - known_to <= tonumber(ARGV[10]))) then
    from, to, first, last = tonumber(ARGV[8]), instant, nil, nil
    if not follows then
      to, first, last = from - 1, instant, instant
    end
  elseif is_ahead then
    to = instant
  elseif not follows then
    to, first, last = known_to, instant, instant
  elseif first then
    last = instant
  else
    to = instant
  end
  local known = string.format('%d-%d', from, to)
  redis.call('SET', KEYS[4], first and string.format('%s,%d-%d', known, first, last) or known, 'PX', ARGV[11])
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
