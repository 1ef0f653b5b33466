-- select: how many jobs of each queue run, wait in line, sleep and are held, and which ids stand at some places of one
-- of these sections, queue after queue, at one instant. Changes nothing.
--
-- KEYS  per queue: queue list, scheduled set, started registry, takers, waiters that are held by a condition
-- ARGV  1 section: running, waiting, deferred, held  2 prefix of job hashes  3 what ids begin with, or ''
--       4 how many to pass over  5 most ids  6... the queue names
-- Answers {now in ms, rows, how many match, 1 if not all could be looked at, {number of the queue, id, place, ...}}.
-- A row is {running, waiting, deferred, held, {boot, its last beat in ms, ...}}, or the error of a key that cannot be
-- read. A place counts from 1 in line, and is 0 in other sections.
-- uses: switches apart running

local section, prefix, beginning = ARGV[1], ARGV[2], ARGV[3]
local offset, most = tonumber(ARGV[4]), tonumber(ARGV[5])
-- Nobody else is answered meanwhile: so many looks are some 30 ms.
local PAGE, MOST_LOOKED = 500, 50000

local matched, looked, found = 0, 0, {}

local function add(number, id, place)
  if beginning ~= '' and string.sub(id, 1, #beginning) ~= beginning then
    return
  end
  matched = matched + 1
  if matched > offset and #found < most * 3 then
    for _, value in ipairs({ number, id, place }) do
      found[#found + 1] = value
    end
  end
end

-- Goes through a list or set in pages. Where every member counts, only those are read that are answered.
local function walk(number, command, key, size, is_counted)
  local from, to = 0, size
  if beginning == '' and not is_counted then
    from = math.min(math.max(offset - matched, 0), size)
    to = math.min(from + most - #found / 3, size)
    matched = matched + from
  end
  local start = from
  while start < to and looked < MOST_LOOKED do
    local ids = redis.call(command, key, start, math.min(start + PAGE, to) - 1)
    local counts = is_counted and is_counted(ids)
    for i, id in ipairs(ids) do
      if not counts or counts[i] then
        add(number, id, section == 'waiting' and start + i or 0)
      end
    end
    looked = looked + #ids
    start = start + PAGE
  end
  if to < size then
    matched = matched + size - to
  elseif start < to then
    looked = MOST_LOOKED + 1
  end
end

local function read(number, name, listed, scheduled, started, takers, held)
  local boots = redis.call('ZRANGE', takers, 0, -1, 'WITHSCORES')
  local running = running_ids(name, prefix, started, boots)
  local line, sleeping = redis.call('LLEN', listed), redis.call('ZCARD', scheduled)
  local count_held = math.min(redis.call('ZCARD', held), sleeping)
  if section == 'running' then
    for _, id in ipairs(running) do
      add(number, id, 0)
    end
  elseif section == 'waiting' then
    walk(number, 'LRANGE', listed, line)
  elseif section == 'held' then
    walk(number, 'ZRANGE', held, count_held)
  else
    walk(number, 'ZRANGE', scheduled, sleeping, function(ids)
      local is_held = #ids > 0 and redis.call('ZMSCORE', held, unpack(ids)) or {}
      local counts = {}
      for i = 1, #ids do
        counts[i] = not is_held[i]
      end
      return counts
    end)
  end
  return { #running, line, sleeping - count_held, count_held, boots }
end

local rows = {}
for number = 1, #ARGV - 5 do
  rows[number] = apart(read, number, ARGV[5 + number], unpack(KEYS, number * 5 - 4, number * 5))
end
return { now_ms(), rows, matched, looked > MOST_LOOKED and 1 or 0, found }
