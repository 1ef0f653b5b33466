-- listing: the jobs of one queue at one instant, by what they do: run (or are in hand), wait in line, sleep, are held
-- by a condition. Each job stands in one section. Changes nothing.
--
-- KEYS  1 queue list  2 scheduled set  3 started registry  4 takers  5 waiters that are held by a condition
-- ARGV  1 queue name  2 prefix of job hashes  3 most rows that run  4 most rows of each other section
--       5... fields of the hash to answer (`status` and `taker` first)
-- Answers {now in ms, {boot, its last beat in ms, ...}, then per section {how many, rows}}: run, line, asleep, held.
-- A row is {id, place in line from 1 or 0, field values...}. Those asleep are looked for among the first MOST_LOOKED.
-- uses: switches

local listed, scheduled, started, takers, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local most_running, most = tonumber(ARGV[3]), tonumber(ARGV[4])
-- Nobody else is answered meanwhile: 10,000 looks are some 15 ms.
local PAGE, MOST_LOOKED = 500, 10000

local seen = {}

-- Adds the job to the rows if its status is this one and it stands nowhere yet; tells whether it counts.
local function add(rows, limit, id, place, status)
  if seen[id] then
    return false
  end
  local found = redis.pcall('HMGET', ARGV[2] .. id, unpack(ARGV, 5))
  if found.err or found[1] ~= status then
    return false
  end
  seen[id] = true
  if #rows < limit then
    rows[#rows + 1] = { id, place, unpack(found) }
  end
  return true
end

-- Few: as many as all workers together have slots, and the dead ones had. A taken list of another type has none.
local running, rows_running = 0, {}
local function run(id, status)
  if add(rows_running, most_running, id, 0, status) then
    running = running + 1
  end
end
for _, member in ipairs(redis.call('ZRANGE', started, 0, -1)) do
  run(string.match(member, '^(.*):[^:]*$') or member, 'started')
end
local boots = redis.call('ZRANGE', takers, 0, -1, 'WITHSCORES')
for i = 1, #boots, 2 do
  for _, id in ipairs(redis.pcall('LRANGE', ARGV[1] .. ':taken:' .. boots[i], 0, -1)) do
    run(id, 'queued')
  end
end

local function page(command, key, from, size)
  return size > 0 and redis.call(command, key, from, from + size - 1) or {}
end

local rows_line = {}
for place, id in ipairs(page('LRANGE', listed, 0, most)) do
  add(rows_line, most, id, place, 'queued')
end

local rows_held = {}
for _, id in ipairs(page('ZRANGE', held, 0, most)) do
  add(rows_held, most, id, 0, 'scheduled')
end

-- In the order in which they wake; those that are held are passed over.
local rows_asleep, from = {}, 0
local ids = page('ZRANGE', scheduled, from, most > 0 and PAGE or 0)
while #ids > 0 and #rows_asleep < most and from < MOST_LOOKED do
  local is_held = redis.call('ZMSCORE', held, unpack(ids))
  for i, id in ipairs(ids) do
    if not is_held[i] and #rows_asleep < most then
      add(rows_asleep, most, id, 0, 'scheduled')
    end
  end
  from = from + PAGE
  ids = page('ZRANGE', scheduled, from, PAGE)
end

local count_held = redis.call('ZCARD', held)
local sleeping = redis.call('ZCARD', scheduled)
return {
  now_ms(),
  boots,
  { running, rows_running },
  { redis.call('LLEN', listed), rows_line },
  { math.max(sleeping - count_held, 0), rows_asleep },
  { math.min(count_held, sleeping), rows_held },
}
