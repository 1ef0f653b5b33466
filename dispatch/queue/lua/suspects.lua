-- suspects: which queues have jobs that nobody alive has: in hand or started by a taker that is silent, or started by
-- one that is no taker. For many queues at once; changes nothing and decides about no job.
--
-- KEYS  per queue: takers, started registry
-- ARGV  1 prefix of job hashes  2 silence (ms)  3... queue names, in the order of KEYS
-- Answers the places of those queues, from 1
-- uses: switches owner

local silent_since = now_ms() - tonumber(ARGV[2])

local function has_in_hand(name, boots)
  for _, boot in ipairs(boots) do
    if redis.call('EXISTS', name .. ':taken:' .. boot) == 1 then
      return true
    end
  end
  return false
end

local function has_started(takers, started)
  for _, member in ipairs(redis.call('ZRANGE', started, 0, -1)) do
    local job = ARGV[1] .. (string.match(member, '^(.*):[^:]*$') or member)
    local found = redis.pcall('HMGET', job, 'status', 'taker')
    if found[1] == 'started' and found[2] then
      local beat = redis.call('ZSCORE', takers, boot_of(found[2]))
      if not beat or tonumber(beat) < silent_since then
        return true
      end
    end
  end
  return false
end

local places = {}
for i = 1, #KEYS, 2 do
  local takers, started, place = KEYS[i], KEYS[i + 1], (i + 1) / 2
  local silent = redis.call('ZRANGEBYSCORE', takers, '-inf', '(' .. string.format('%d', silent_since))
  -- Where all takers speak they sweep for themselves.
  local has_cause = #silent > 0 or redis.call('EXISTS', takers) == 0
  if has_cause and (has_in_hand(ARGV[2 + place], silent) or has_started(takers, started)) then
    places[#places + 1] = place
  end
end
return places
