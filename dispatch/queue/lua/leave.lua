-- leave: this boot has ended, with nothing in hand. Its beats are made old at once, so that nobody waits for it. They
-- are not taken away: an id that a pop moved whose answer was lost must be found, and now is at the next sweep.
--
-- KEYS  the takers of each queue
-- ARGV  1 boot  2 silence (ms) that condemns what is in hand
-- Answers now in ms
-- uses: switches kinds

local now = now_ms()
for i = 1, #KEYS do
  if is_kind(KEYS[i], 'zset') then
    redis.call('ZADD', KEYS[i], 'XX', now - tonumber(ARGV[2]) - 1, ARGV[1])
  end
end
return now
