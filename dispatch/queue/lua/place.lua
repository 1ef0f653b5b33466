-- place: where one job stands, and what of its queue keeps it there, at one instant. Changes nothing.
--
-- KEYS  1 job hash  2 queue list  3 started registry  4 takers
-- ARGV  1 id  2 queue name  3... fields of the hash to answer (`status` and `taker` first)
-- Answers {} (no such job) | {now in ms, {boot, its last beat in ms, ...}, place in line from 1 or 0, length of the
--       line, how many run or are in hand, boot that has the job or '', field values...}
-- uses: switches owner kinds

local job, id = KEYS[1], ARGV[1]
local found = redis.pcall('HMGET', job, unpack(ARGV, 3))
if found.err or not found[1] then
  return {}
end

local place = redis.call('LPOS', KEYS[2], id)
local boots = redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES')
local busy = redis.call('ZCARD', KEYS[3])
local has = found[2] and boot_of(found[2]) or ''
for i = 1, #boots, 2 do
  local taken = ARGV[2] .. ':taken:' .. boots[i]
  -- A taken list of another type has nothing in hand.
  if is_kind(taken, 'list') then
    busy = busy + redis.call('LLEN', taken)
    -- Moved a moment ago and not yet claimed: nobody's token stands in its hash.
    if has == '' and not place and redis.call('LPOS', taken, id) then
      has = boots[i]
    end
  end
end
return { now_ms(), boots, place and place + 1 or 0, redis.call('LLEN', KEYS[2]), busy, has, unpack(found) }
