-- Free the slots that earlier boots of one host have left claimed.
--
-- KEYS  slots
-- ARGV  1 host-id  2 how tokens of its present boot begin: `<boot>/`  3 how claims of its worker begin: `<worker>#`
-- Answers how many were freed
--
-- May be repeated. A token says whose it is, `<host-id>-<8 hex>/<number>`: a worker's name may be given to another
-- machine, whose containers nobody here has seen. The name decides where there is no token.

local POP = '#([^#]*)%-%x%x%x%x%x%x%x%x/%d+$'

local freed = 0
for _, key in ipairs(KEYS) do
  local claim = claim_in(key) or ''
  local host = string.match(claim, POP)
  local is_left
  if host then
    is_left = host == ARGV[1] and not string.find(claim, '#' .. ARGV[2], 1, true)
  else
    is_left = string.sub(claim, 1, #ARGV[3]) == ARGV[3]
  end
  if is_left then
    freed = freed + redis.call('DEL', key)
  end
end
return freed
