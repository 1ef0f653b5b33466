-- overview: every queue with its figures and its pause, who was asked to stop or is drained, and which records wait for their
-- host, at one instant. Changes nothing, and a key of a wrong type costs one figure, not the answer.
--
-- KEYS  1 pause:*   2 queues:known
-- ARGV  1 JSON of names: queues (beside the known ones), hosts, hostIds
--       2-9 the beginnings of keys: queue list, scheduled set, started registry, takers, pause, request to stop,
--           pending records, drain
-- Answers one JSON text, since a reader takes long over thousands of small ones:
--   {"now": ms, "pause": flag,
--    "queues": [[name, waiting, in hand, started, sleeping, sleepers, last beat, flag], ...],
--    "stops": [[host, at, by, reason, with], ...], "pending": [[host-id, count], ...],
--    "drained": [host, ...]}
--   Sleepers are [held, for a cap, for a pause window, for another try]. A figure is -1 where it cannot be read. A flag is ['1', by, reason, since, until], or ['0'] when it does not
--   hold; texts are cut to 500 bytes. Nothing to tell is {} for a list.
-- uses: switches

local asked = cjson.decode(ARGV[1])
local LIST, SCHEDULED, STARTED, TAKERS, PAUSE, STOP, PENDING, DRAIN = unpack(ARGV, 2)
local now = now_ms()

local function figure(command, key)
  local found = redis.pcall(command, key)
  return type(found) == 'number' and found or -1
end

local function texts(key, ...)
  local found = redis.pcall('HMGET', key, ...)
  local row = {}
  for i = 1, select('#', ...) do
    row[i] = not found.err and string.sub(found[i] or '', 1, 500) or ''
  end
  return row
end

local function flag(key)
  if not holds(key, now) then
    return {'0'}
  end
  return {'1', unpack(texts(key, 'by', 'reason', 'since', 'until'))}
end

-- How many jobs its workers have in hand, and the last beat of any of them.
local function taking(name)
  local found = redis.pcall('ZRANGE', TAKERS .. name, 0, -1, 'WITHSCORES')
  if found.err then
    return -1, ''
  end
  local in_hand = 0
  for i = 1, #found, 2 do
    in_hand = in_hand + math.max(0, figure('LLEN', name .. ':taken:' .. found[i]))
  end
  return in_hand, found[#found] or ''
end

local function known()
  local found = redis.pcall('SMEMBERS', KEYS[2])
  return found.err and {} or found
end

local queues, seen = {}, {}
for _, names in ipairs({asked.queues, known()}) do
  for _, name in ipairs(names) do
    if not seen[name] then
      seen[name] = true
      local in_hand, beat = taking(name)
      local function sleeping_for(reason)
        return figure('ZCARD', 'waiters:' .. name .. ':' .. reason)
      end
      table.insert(queues, {
        name,
        figure('LLEN', LIST .. name),
        in_hand,
        figure('ZCARD', STARTED .. name),
        figure('ZCARD', SCHEDULED .. name),
        {sleeping_for('wait'), sleeping_for('cap'), sleeping_for('pause-window'), sleeping_for('retry')},
        beat,
        flag(PAUSE .. name),
      })
    end
  end
end

local stops, drained = {}, {}
for _, host in ipairs(asked.hosts) do
  if redis.call('EXISTS', STOP .. host) == 1 then
    table.insert(stops, {host, unpack(texts(STOP .. host, 'at', 'by', 'reason', 'with'))})
  end
  if holds(DRAIN .. host, now) then
    table.insert(drained, host)
  end
end

local pending = {}
for _, id in ipairs(asked.hostIds) do
  local count = figure('LLEN', PENDING .. id)
  if count > 0 then
    table.insert(pending, {id, count})
  end
end

return cjson.encode({
  now = now,
  pause = flag(KEYS[1]),
  queues = queues,
  stops = stops,
  pending = pending,
  drained = drained,
})
