-- is_kind(key, kind) tells whether a key is absent or of this type: anybody may have written anything there.
local function is_kind(key, kind)
  local found = redis.call('TYPE', key).ok
  return found == kind or found == 'none'
end
