-- Reserve one container start in every active window of both ledgers, or in none.
--
-- KEYS[1]    the grant of this attempt: budget:r:<job>:<attempt>
-- KEYS[2]    hash of the job (fields status, taker), read only with ARGV[5]
-- KEYS[3..]  the counters, scoped ones first, each ledger as day, week, month
-- ARGV[1]    token of the pop that asks
-- ARGV[2]    firstQueued of the job, ms
-- ARGV[3]    now, ms of Valkey's TIME: the instant that chose the counters
-- ARGV[4]    lifetime of a grant, s
-- ARGV[5]    'held' to grant only while the token has the job in hand, '' to ask nobody
-- ARGV[6]    how far ARGV[3] may be off, ms, '' to believe it
-- ARGV[7..]  five for each counter: ledger (scope | global), window, cap, count above which starts are held,
--            lifetime of the counter, s
--
-- Answers, all texts:
--   granted, instant, stored token, counters joined by newlines, new | repeated
--   lost: the token does not have the job
--   stale, TIME in ms: ARGV[3] is further off, or of another day; ask again with this
--   blocked, over-budget | soft-hold | scope-cap, window, starts counted so far, cap
--
-- A repeat (same attempt, same firstQueued) is answered with what was granted and takes the grant over for its
-- token, unless a later one has: a call that a lost connection delivers late must not take it back.
--
-- What was granted on another day is no answer to who has the job in hand: two starts would run on a day whose cap
-- is one. The job was never begun, so no container was asked for: the grant is paid back and the request judged as
-- if it had never been. Blocked then means that nothing is held.
--
-- Who was frozen while another took the job over must not take over the grant either: its refund would pay back a
-- container that ran.
--
-- Everything is read and judged before the first write, and the first write of a grant is one that a full server
-- refuses: so an error, whatever it is, means that nothing was taken, and nothing paid back either. After its
-- first write a script may make all others. A refusal that pays back begins with one that a full server allows.

local grant = KEYS[1]
local token, first_queued, now, grant_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function day_of(instant)
  return math.floor(instant / 86400000)
end

if ARGV[5] == 'held' then
  local job = redis.pcall('HMGET', KEYS[2], 'status', 'taker')
  if job.err or job[1] ~= 'queued' or job[2] ~= token then
    return {'lost'}
  end
end
if ARGV[6] ~= '' then
  local time = redis.call('TIME')
  local today = time[1] * 1000 + math.floor(time[2] / 1000)
  if math.abs(today - now) > tonumber(ARGV[6]) or day_of(today) ~= day_of(now) then
    return {'stale', string.format('%d', today)}
  end
end

local stored = redis.call('HMGET', grant, 'firstQueued', 'instant', 'token', 'windows', 'tokenAt')
local is_repeat = stored[1] == first_queued
local outlived = is_repeat and ARGV[5] == 'held' and day_of(stored[2]) ~= day_of(now) and stored[4]
if is_repeat and not outlived then
  local holder = stored[3]
  if tonumber(now) >= tonumber(stored[5] or stored[2]) then
    redis.call('HSET', grant, 'token', token, 'tokenAt', now)
    holder = token
  end
  return {'granted', stored[2], holder, stored[4], 'repeated'}
end

-- A week goes on over midnight: what will be paid back to a counter is not counted in it.
local paid_back = {}
for counter in string.gmatch(outlived or '', '[^\n]+') do
  paid_back[counter] = can_be_lowered(counter)
end

local blocked
local rank = {['soft-hold'] = 1, ['over-budget'] = 2, ['scope-cap'] = 3}

local function judge(ledger, count, cap, hold)
  if count + 1 > cap then
    return ledger == 'scope' and 'scope-cap' or 'over-budget'
  elseif count + 1 > hold then
    return 'soft-hold'
  end
end

for index = 3, #KEYS do
  local at = 7 + (index - 3) * 5
  local value = redis.call('GET', KEYS[index]) or '0'
  -- As INCR reads it, and short enough for it: "007" is no number to it, and then it is too late to refuse.
  if value ~= '0' and not string.match(value, '^%-?[1-9]%d*$') or #value > 16 then
    return redis.error_reply('ERR a spend counter holds no whole number')
  end
  local count = tonumber(value) - (paid_back[KEYS[index]] and 1 or 0)
  local reason = judge(ARGV[at], count, tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
  -- The worst state is named, of equal ones the first window; the scope goes before everything global.
  if reason and (not blocked or rank[reason] > rank[blocked[2]]) then
    blocked = {'blocked', reason, ARGV[at + 1], string.format('%.0f', count), ARGV[at + 2]}
  end
end
if blocked then
  if outlived then
    redis.call('DEL', grant)
    pay_back(outlived)
  end
  return blocked
end

local counters = table.concat(KEYS, '\n', 3)
redis.call('HSET', grant, 'windows', counters, 'instant', now, 'token', token, 'tokenAt', now,
  'firstQueued', first_queued)
-- What an earlier job of this id recorded says nothing about this one (tokens.lua).
redis.call('HDEL', grant, 'tokens')
redis.call('EXPIRE', grant, grant_ttl)
pay_back(outlived or '')
for index = 3, #KEYS do
  redis.call('INCR', KEYS[index])
  -- Once: traffic must not postpone the end of a window. Asked of the key, so that none stays for ever.
  if redis.call('TTL', KEYS[index]) < 0 then
    redis.call('EXPIRE', KEYS[index], ARGV[7 + (index - 3) * 5 + 4])
  end
end
return {'granted', now, token, counters, 'new'}
