-- tally(key, name) counts `name` in the hash, which keeps 32 names and the rest as `other`. It shows something, no
-- more: a key of another type or a full server keeps no job from its step.
local function tally(key, name)
  local known = redis.pcall('HEXISTS', key, name)
  local names = redis.pcall('HLEN', key)
  if type(names) ~= 'number' then
    return
  end
  redis.pcall('HINCRBY', key, (known == 1 or names < 32) and name or 'other', 1)
end
