-- wake these: scheduled -> scheduled, due now. Some jobs of one queue, whatever they sleep for.
--
-- KEYS  1 scheduled set
-- ARGV  1 prefix of job hashes  2... ids
-- Answers how many are due now. Who sleeps no more is passed over.
-- uses: switches due

local now, woken = now_ms(), 0
for i = 2, #ARGV do
  if make_due(KEYS[1], ARGV[1] .. ARGV[i], ARGV[i], now) then
    woken = woken + 1
  end
end
return woken
