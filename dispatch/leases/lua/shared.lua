-- Not a script but the beginning of those that look into slots.
--
-- A claim is `<worker>#<job>#<token>`; neither a worker's name nor a token has a '#' in it. Anything else that
-- stands in a slot was not written by us: nobody's claim, and the slot is taken all the same until it expires.

-- Longer than every claim. No more is read of what stands there.
local LONGEST = 512

-- What stands in a slot: false when it is free, '' for what is no text or too long.
local function claim_in(key)
  local text = redis.pcall('GETRANGE', key, 0, LONGEST)
  if type(text) == 'table' or #text > LONGEST then
    return ''
  end
  return text ~= '' and text or redis.call('EXISTS', key) == 1 and ''
end
