-- claim: queued -> in hand. Takes the id at the front of the queue, or judges one that BLMOVE already moved, and
-- writes who has it. An id that is no waiting job (hash gone or no hash, other status, somebody else has it in hand)
-- leaves the taken list.
--
-- KEYS  1 queue list  2 taken list of this boot  3 takers  4 pause:*  5 pause:<queue>  6 drain:<host>
-- ARGV  1 queue name  2 prefix of job hashes  3 boot  4 token  5 host name
--       6 'pop', or 'moved' for  7 the id that is in the taken list already  8... fields of the hash to answer
-- Answers {'empty'} | {'paused'} | {'dropped', id} | {'claimed', id, now in ms, field values...}
--
-- Repeating it with the same token and id answers 'claimed' again.
-- uses: switches owner

local queue, taken = KEYS[1], KEYS[2]
local token, id = ARGV[4], ARGV[7]
local now = now_ms()
local paused = holds(KEYS[4], now) or holds(KEYS[5], now) or holds(KEYS[6], now)

-- Whoever takes must be known to the sweep, or what it took is lost with it.
redis.call('ZADD', KEYS[3], 'NX', now, ARGV[3])

if ARGV[6] == 'pop' then
  if paused then
    return { 'paused' }
  end
  id = redis.call('LMOVE', queue, taken, 'LEFT', 'RIGHT')
  if not id then
    return { 'empty' }
  end
elseif not redis.call('LPOS', taken, id) then
  return { 'dropped', id }
end

-- The other entry of an id that stands twice: its taker's list holds it, besides the entry judged here.
local function held_by(other)
  local list = ARGV[1] .. ':taken:' .. boot_of(other)
  local entries = #redis.pcall('LPOS', list, id, 'COUNT', 0)
  return entries > (list == taken and 1 or 0)
end

local job = ARGV[2] .. id
local found = redis.pcall('HMGET', job, 'status', 'taker', unpack(ARGV, 8))
local other = not found.err and found[2] and found[2] ~= token and found[2]
if found.err or found[1] ~= 'queued' or (other and held_by(other)) then
  redis.call('LREM', taken, 1, id)
  return { 'dropped', id }
end
if paused then
  redis.call('LREM', taken, 1, id)
  redis.call('HDEL', job, 'taker', 'host')
  redis.call('LPUSH', queue, id)
  return { 'paused' }
end
redis.call('HSET', job, 'taker', token, 'host', ARGV[5])
return { 'claimed', id, now, unpack(found, 3) }
