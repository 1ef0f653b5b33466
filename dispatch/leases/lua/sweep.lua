-- Free the slots that earlier boots of one worker have left claimed.
--
-- KEYS  slots
-- ARGV  1 how that worker's claims begin: `<worker>#`  2 how tokens of its present boot begin: `<boot>/`
-- Answers how many were freed
--
-- May be repeated.

local freed = 0
for _, key in ipairs(KEYS) do
  local claim = claim_in(key) or ''
  local token = string.match(claim, '#([^#]*)$') or ''
  if string.sub(claim, 1, #ARGV[1]) == ARGV[1] and string.sub(token, 1, #ARGV[2]) ~= ARGV[2] then
    freed = freed + redis.call('DEL', key)
  end
end
return freed
