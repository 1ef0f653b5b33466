-- wake: scheduled -> scheduled, due now. The oldest of these queues' waiters together. For whoever freed what they
-- wait for.
--
-- KEYS  per queue: waiters, scheduled set
-- ARGV  1 prefix of job hashes  2 score: only waiters queued after it ('-inf': all)  3 how many
--       4 'whole': of the last one's score take all; or 'exact'  5 seconds, or '': pass over queues where
--       somebody has been due for longer, for nobody promotes there
-- Answers {score of the last one if there are more, else '', ids that are due now...}. Members that sleep no more
-- leave the set of waiters; they do not count. A queue with a key of another type has nobody to wake.
-- uses: switches due kinds

local now = now_ms()
local after, most, whole = ARGV[2], tonumber(ARGV[3]), ARGV[4] == 'whole'
local page = most + 1
local long_due = ARGV[5] ~= '' and math.floor(now / 1000) - tonumber(ARGV[5])

local function is_left_alone(scheduled)
  local first = long_due and redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
  return first and tonumber(first) < long_due
end

local lines = {}
for i = 1, #KEYS, 2 do
  if is_kind(KEYS[i], 'zset') and is_kind(KEYS[i + 1], 'zset') and not is_left_alone(KEYS[i + 1]) then
    lines[#lines + 1] = { waiters = KEYS[i], scheduled = KEYS[i + 1], read = 0, members = {}, at = 1, gone = {} }
  end
end

-- The first member of a line that was not looked at, and its score; nil at the end. Nothing leaves the set while it
-- is read, so that the pages meet.
local function head(line)
  if line.at > #line.members and not line.ended then
    line.members = redis.call('ZRANGEBYSCORE', line.waiters, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', line.read,
      page)
    line.read, line.at, line.ended = line.read + page, 1, #line.members < 2 * page
  end
  return line.members[line.at], line.members[line.at + 1]
end

-- The line whose head is the oldest, that head and its score.
local function oldest()
  local first, first_id, first_score
  for _, line in ipairs(lines) do
    local id, score = head(line)
    if id and (not first or tonumber(score) < tonumber(first_score)) then
      first, first_id, first_score = line, id, score
    end
  end
  return first, first_id, first_score
end

local answer, woken, last = { '' }, 0, after
local line, id, score = oldest()
while line do
  if woken >= most and not (whole and tonumber(score) == tonumber(last)) then
    answer[1] = last
    break
  end
  line.at = line.at + 2
  if make_due(line.scheduled, ARGV[1] .. id, id, now) then
    woken, last = woken + 1, score
    answer[#answer + 1] = id
  else
    line.gone[#line.gone + 1] = id
  end
  line, id, score = oldest()
end
for _, one in ipairs(lines) do
  for _, gone in ipairs(one.gone) do
    redis.call('ZREM', one.waiters, gone)
  end
end
return answer
