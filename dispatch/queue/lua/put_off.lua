-- put off: in hand -> scheduled. Spends no attempt, pushes no record, keeps the id.
--
-- KEYS  1 job hash  2 taken list of this boot  3 scheduled set  4 waiters of this reason  5 set of RQ's queues
--       6 how often jobs were put off, by reason
-- ARGV  1 id  2 token  3 until (ms)  4 reason  5 scope hash or ''  6 queue list (as RQ lists it in KEYS[5])
--       7 cause or ''
-- Answers 'done' | 'lost'
-- uses: switches owner waiters tally

local has = owner(KEYS[1], ARGV[2])
if has == 'left' then
  return 'done'
elseif has ~= 'hand' then
  return 'lost'
end
redis.call('LREM', KEYS[2], 1, ARGV[1])
sleep({
  job = KEYS[1], id = ARGV[1], token = ARGV[2], now = now_ms(), ['until'] = tonumber(ARGV[3]), reason = ARGV[4],
  scope = ARGV[5], cause = ARGV[7], scheduled = KEYS[3], waiters = KEYS[4], queues = KEYS[5], queue = ARGV[6],
})
tally(KEYS[6], ARGV[4])
return 'done'
