-- refuse: in hand -> finished (policy). Nothing ran; the record is pushed in the same step.
--
-- KEYS  1 job hash  2 taken list of this boot  3 finished registry  4 results of the job  5 pending records
-- ARGV  1 id  2 token  3 now (RQ's text)  4 now (epoch seconds)  5 RQ worker name  6 default lifetime (s)
--       7, 8 name and value of the result's field  9 record
-- Answers 'done' | 'lost'
-- uses: switches owner finish

local has = owner(KEYS[1], ARGV[2])
if has == 'left' then
  return 'done'
elseif has ~= 'hand' then
  return 'lost'
end
can_finish(KEYS[4], KEYS[3], KEYS[5])
redis.call('LREM', KEYS[2], 1, ARGV[1])
finish({
  job = KEYS[1], id = ARGV[1], now = now_ms(), status = 'finished', ttl = ARGV[6], registry = KEYS[3],
  results = KEYS[4], worker = ARGV[5], payload = { ARGV[7], ARGV[8] }, ended_at = ARGV[3], ended = ARGV[4],
  left = ARGV[2], records = KEYS[5], record = ARGV[9],
})
return 'done'
