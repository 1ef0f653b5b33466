-- Not a script but the beginning of those that write a hold, so that all of them write alike.
--
-- A hold is a hash; `since` is when it was first recorded, and without a number there nobody is held. Lifetimes are
-- only ever lengthened: a shorter one must not make the clock of a hold start again.

local function lengthen(key, ms)
  if redis.call('PTTL', key) < tonumber(ms) then
    redis.call('PEXPIRE', key, ms)
  end
end

-- The index lives as long as the longest of its holds.
local function keep(hold, index, ms)
  lengthen(hold, ms)
  lengthen(index, ms)
end

local function whole(text)
  return text and string.match(text, '^%d+$') and tonumber(text)
end

local function number(key, field)
  return whole(redis.call('HGET', key, field))
end

-- As the scripts take them: KEYS 1 hold, 2 index of held jobs, 3 claim (absent: the job coalesces with nobody);
-- ARGV 1 job id, 2 now (ms), 3 lifetime (ms), 4 target, 5 label, 6 identity or ''.
local function record()
  if not number(KEYS[1], 'since') then
    redis.call('HSET', KEYS[1], 'since', ARGV[2])
  end
  redis.call('HSET', KEYS[1], 'target', ARGV[4], 'label', ARGV[5], 'dedupId', ARGV[6])
  redis.call('SADD', KEYS[2], ARGV[1])
  keep(KEYS[1], KEYS[2], ARGV[3])
  if KEYS[3] and redis.call('GET', KEYS[3]) == ARGV[1] then
    lengthen(KEYS[3], ARGV[3])
  end
end

local function counters()
  return redis.call('HMGET', KEYS[1], 'since', 'checks', 'faults', 'throttles')
end

-- KEYS and ARGV 1 as of `record`: forget the hold, and the claim if it is this job's.
local function let_go()
  redis.call('DEL', KEYS[1])
  redis.call('SREM', KEYS[2], ARGV[1])
  if KEYS[3] and redis.call('GET', KEYS[3]) == ARGV[1] then
    redis.call('DEL', KEYS[3])
  end
end
