-- Not a script but the beginning of those that pay a grant back, so that both judge a counter alike.
--
-- A counter that is gone stays gone (it would come back without a lifetime), none goes below zero, and one that
-- somebody made no number of does not keep the others from being paid back.

local function can_be_lowered(counter)
  local value = redis.pcall('GET', counter)
  return type(value) == 'string' and string.match(value, '^[1-9]%d*$') and #value <= 16
end

-- Take one start off each counter that a grant had added to; `counters` as it names them, joined by newlines.
local function pay_back(counters)
  for counter in string.gmatch(counters, '[^\n]+') do
    if can_be_lowered(counter) then
      redis.call('DECR', counter)
    end
  end
end

