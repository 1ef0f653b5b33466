-- execution_of(token) answers the id of the execution that this token's begin creates (as Python's
-- `dispatch.queue.owner.execution_id`).
local function execution_of(token)
  return string.sub(redis.sha1hex(token), 1, 32)
end

-- end_execution(e) takes away what begin wrote about an execution and answers when it began (epoch text, or nil
-- when it has expired). e: id, token, execution, executions, wip, worker_executions. They show something, no more:
-- one of another type keeps no job from its end.
local function end_execution(e)
  local execution = execution_of(e.token)
  local member = e.id .. ':' .. execution
  local started = redis.pcall('HGET', e.execution, 'created_at')
  redis.call('DEL', e.execution)
  redis.pcall('ZREM', e.wip, member)
  redis.pcall('ZREM', e.executions, execution)
  redis.pcall('SREM', e.worker_executions, member)
  return type(started) == 'string' and started or nil
end

-- count_work(worker, field, started, ended) adds to the figures of RQ's worker hash, if it is still there.
local function count_work(worker, field, started, ended)
  if redis.call('EXISTS', worker) == 0 then
    return
  end
  redis.call('HINCRBY', worker, field, 1)
  local seconds = started and ended - started
  if seconds and seconds > 0 then
    redis.call('HINCRBYFLOAT', worker, 'total_working_time', string.format('%.6f', seconds))
  end
end
