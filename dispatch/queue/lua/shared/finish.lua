-- lifetime(job, field, default) answers the seconds that RQ would keep this job, and `default` for a value that no
-- producer of ours writes.
local function lifetime(job, field, default)
  local seconds = tonumber(redis.call('HGET', job, field) or '')
  if not (seconds and seconds >= 1 and seconds <= 315360000) then
    seconds = tonumber(default)
  end
  return math.floor(seconds)
end

-- can_finish(results, registry, records) fails where one of them has another type, before anything has left its place.
local function can_finish(results, registry, records)
  redis.call('XLEN', results)
  redis.call('ZCARD', registry)
  redis.call('LLEN', records)
end

-- finish(f) writes a terminal state as RQ's _handle_success and _handle_failure do: status, result, registry and
-- lifetimes; and it pushes the record. f: job, id, now (ms), status, ttl (default seconds), registry, results,
-- worker (name), payload (name and value of the result's field), execution (id or nil), started (epoch text or
-- nil), ended_at (RQ's text), ended (epoch text), left (token or nil), records, record.
local function finish(f)
  local failed = f.status == 'failed'
  local ttl = lifetime(f.job, failed and 'failure_ttl' or 'result_ttl', f.ttl)
  redis.call('HDEL', f.job, 'taker', 'host', 'left', 'reason', 'until', 'since', 'cause')
  redis.call('HSET', f.job, 'status', f.status, 'ended_at', f.ended_at, 'last_heartbeat', f.ended_at)
  if f.left then
    redis.call('HSET', f.job, 'left', f.left)
  end
  local result = { 'type', failed and 2 or 1, 'worker_name', f.worker, f.payload[1], f.payload[2] }
  if f.execution then
    for _, value in ipairs({ 'execution_id', f.execution, 'execution_started_at', f.started or f.ended,
      'execution_ended_at', f.ended }) do
      result[#result + 1] = value
    end
  end
  redis.call('XADD', f.results, 'MAXLEN', '~', 10, '*', unpack(result))
  redis.call('EXPIRE', f.results, ttl)
  redis.call('EXPIRE', f.job, ttl)
  -- What RQ's own cleanup of this registry does, which never runs here: without it the registry grows for ever.
  redis.call('ZREMRANGEBYSCORE', f.registry, 0, math.floor(f.now / 1000))
  redis.call('ZADD', f.registry, math.floor(f.now / 1000) + ttl, f.id)
  redis.call('RPUSH', f.records, f.record)
end
