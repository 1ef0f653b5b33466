-- Mirror records: each entry is replaced only by newer news of its job; then the mirror is trimmed.
--
-- KEYS[1]   the index: runs:index, stem -> end (or start) of the run in ms
-- KEYS[2..] two for each record: its body under the plain stem, its body under the marked one
-- ARGV      1 prefix of a body's key  2 how long this host's entries live, ms  3 how long any host's may, ms
--           4 most members  5 most members to trim in one go
--           6.. six for each record: job id, attempt, final (1 | 0), end as text, end in ms, body
--
-- Answers for each record 'written' | 'kept' (what stands there is as new) | 'aged' (older than entries live).
--
-- Two ids can have one plain stem: who comes second is kept under its marked one, as files are. News are compared by
-- (attempt, final, end), the end as text: all of ours have one width. A body that is none, or a key of another type,
-- is worth nothing and replaced.
--
-- An entry goes with its age, by this server's clock. Of other hosts' older entries only the index of those that
-- have gone is cleared: a host that keeps its files for a shorter time must not shorten the others' history.

local index = KEYS[1]
local prefix, window, longest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = '1970-01-01T00:00:00.000Z'

local function ended(record)
  for _, name in ipairs({'endedAt', 'startedAt', 'queuedAt'}) do
    local text = record[name]
    if type(text) == 'string' then
      return string.match(text, '^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$') or ''
    end
  end
  return epoch
end

local function read(key)
  local body = redis.pcall('GET', key)
  if type(body) ~= 'string' then
    return nil
  end
  local is_json, record = pcall(cjson.decode, body)
  if is_json and type(record) == 'table' and type(record.jobId) == 'string' and type(record.attempt) == 'number' then
    return {job = record.jobId, attempt = record.attempt, final = record.final ~= false, ended = ended(record)}
  end
end

local function is_newer(one, other)
  if one.attempt ~= other.attempt then
    return one.attempt > other.attempt
  elseif one.final ~= other.final then
    return one.final
  end
  return one.ended > other.ended
end

local function place(plain, marked, job)
  if redis.call('EXISTS', marked) == 1 then
    return marked, read(marked)
  end
  local present = read(plain)
  if present and present.job ~= job then
    return marked, nil
  end
  return plain, present
end

local function mirror(at, plain, marked)
  local job, at_ms, body = ARGV[at], tonumber(ARGV[at + 4]), ARGV[at + 5]
  local news = {attempt = tonumber(ARGV[at + 1]), final = ARGV[at + 2] == '1', ended = ARGV[at + 3]}
  local lives = math.min(window, window - (now - at_ms))
  if lives <= 0 then
    return 'aged'
  end
  local key, present = place(plain, marked, job)
  local stem = string.sub(key, #prefix + 1)
  if present and not is_newer(news, present) then
    if not is_newer(present, news) then
      redis.call('ZADD', index, ARGV[at + 4], stem)
    end
    return 'kept'
  end
  redis.call('SET', key, body, 'PX', string.format('%.0f', lives))
  redis.call('ZADD', index, ARGV[at + 4], stem)
  return 'written'
end

local function forget(stems)
  for _, stem in ipairs(stems) do
    redis.call('ZREM', index, stem)
    redis.call('UNLINK', prefix .. stem)
  end
end

local function trim(most, at_once)
  local old = redis.call('ZRANGEBYSCORE', index, '-inf', string.format('%.0f', now - window), 'LIMIT', 0, at_once)
  for _, stem in ipairs(old) do
    if tonumber(redis.call('ZSCORE', index, stem)) <= now - longest or redis.call('EXISTS', prefix .. stem) == 0 then
      forget({stem})
    end
  end
  local excess = math.min(redis.call('ZCARD', index) - most, at_once)
  if excess > 0 then
    forget(redis.call('ZRANGE', index, 0, excess - 1))
  end
end

local kind = redis.call('TYPE', index).ok
if kind ~= 'none' and kind ~= 'zset' then
  return redis.error_reply('WRONGTYPE the index of the mirror is no sorted set')
end
local answers = {}
for i = 2, #KEYS, 2 do
  table.insert(answers, mirror(6 + (i - 2) * 3, KEYS[i], KEYS[i + 1]))
end
trim(tonumber(ARGV[4]), tonumber(ARGV[5]))
if redis.call('PTTL', index) < window then
  redis.call('PEXPIRE', index, string.format('%.0f', window))
end
return answers
