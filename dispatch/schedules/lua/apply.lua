-- apply: changes one table of schedules in one step, or nothing of it when a definition is not what was read before.
--
-- KEYS  1 definitions  2 upcoming  3 since  4 fired  5 torn  6 known queues
-- ARGV  1 queue name, then eleven sections, each with the number of its values before them:
--       id and definition that has to stand there ('' = none) ...; id and definition to write ...; next (ms) and id ...;
--       id and since (ms) ...; id and note of a tear ...; id and note of what was acted on ...; ids without a next
--       instant; ids to uninstall; ids to clear of a tear; ids to remove, what was acted on is remembered; id and note
--       of what was acted on that goes if it is this one still ...
-- Answers 1 | 0 (somebody else changed it meanwhile; nothing changed)

-- What Lua can pass as arguments is limited. Even, so that pairs stay together.
local PAGE = 2000

-- What has a wrong type fails here, before anything has changed.
for i = 1, 5 do
  redis.call(i == 2 and 'ZCARD' or 'HLEN', KEYS[i])
end
redis.call('SCARD', KEYS[6])

local at = 2
local function section()
  local first, last = at + 1, at + tonumber(ARGV[at])
  at = last + 1
  return first, last
end

-- Calls the command with the values from first to last.
local function each(command, key, first, last)
  for from = first, last, PAGE do
    redis.call(command, key, unpack(ARGV, from, math.min(from + PAGE - 1, last)))
  end
end

local first, last = section()
for i = first, last, 2 do
  if (redis.call('HGET', KEYS[1], ARGV[i]) or '') ~= ARGV[i + 1] then
    return 0
  end
end

first, last = section()
each('HSET', KEYS[1], first, last)
if last >= first then
  redis.call('SADD', KEYS[6], ARGV[1])
end
each('ZADD', KEYS[2], section())
each('HSET', KEYS[3], section())
each('HSET', KEYS[5], section())
each('HSET', KEYS[4], section())
-- What a full server does not refuse comes last.
each('ZREM', KEYS[2], section())

local function take_out(hashes, first, last)
  each('ZREM', KEYS[2], first, last)
  for _, hash in ipairs(hashes) do
    each('HDEL', hash, first, last)
  end
end

first, last = section()
take_out({ KEYS[1], KEYS[3] }, first, last)
each('HDEL', KEYS[5], section())
first, last = section()
take_out({ KEYS[1], KEYS[3], KEYS[5] }, first, last)
first, last = section()
for i = first, last, 2 do
  if redis.call('HGET', KEYS[4], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[4], ARGV[i])
  end
end
return 1
