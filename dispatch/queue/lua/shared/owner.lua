-- owner(job, token) tells what this token has of the job: 'hand' (claimed, not started), 'started', 'left' (its
-- own leaving transition has already landed) or nil (somebody else decided, or the hash is gone).
local function owner(job, token)
  local found = redis.pcall('HMGET', job, 'status', 'taker', 'left')
  if found.err then
    return nil
  end
  if found[2] == token then
    return found[1] == 'queued' and 'hand' or found[1] == 'started' and 'started' or nil
  end
  return found[3] == token and 'left' or nil
end

-- boot_of(token) answers the boot that popped.
local function boot_of(token)
  return string.match(token, '^(.*)/') or ''
end
