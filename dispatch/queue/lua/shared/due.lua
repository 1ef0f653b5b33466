-- make_due(scheduled, job, id, now) lets a sleeping job be due now (ms), or leaves it as early as it is. Answers
-- whether it sleeps. `job` names its hash, which may be gone.
local function make_due(scheduled, job, id, now)
  if not redis.call('ZSCORE', scheduled, id) then
    return false
  end
  redis.call('ZADD', scheduled, 'XX', 'LT', math.floor(now / 1000), id)
  if redis.call('EXISTS', job) == 1 then
    redis.call('HSET', job, 'until', string.format('%d', now))
  end
  return true
end
