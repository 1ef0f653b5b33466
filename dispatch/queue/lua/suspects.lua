-- suspects: which queues have jobs that nobody alive has: in hand or started by a taker that is silent, or started by
-- one that is no taker. For many queues at once; changes nothing and decides about no job.
--
-- KEYS  per queue: takers, started registry
-- ARGV  1 prefix of job hashes  2 silence (ms)  3... queue names, in the order of KEYS
-- Answers per queue: 1 if it is one, else 0, or the error of a key that cannot be read
-- uses: switches owner apart

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

local function is_suspect(name, takers, started)
  local silent = redis.call('ZRANGEBYSCORE', takers, '-inf', '(' .. string.format('%d', silent_since))
  -- Where all takers speak they sweep for themselves.
  if #silent == 0 and redis.call('EXISTS', takers) == 1 then
    return 0
  end
  return (has_in_hand(name, silent) or has_started(takers, started)) and 1 or 0
end

local answers = {}
for i = 3, #ARGV do
  local at = 2 * (i - 2) - 1
  answers[#answers + 1] = apart(is_suspect, ARGV[i], KEYS[at], KEYS[at + 1])
end
return answers
