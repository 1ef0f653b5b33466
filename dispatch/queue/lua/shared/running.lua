-- running_ids(name, prefix, started, boots) answers the ids of the jobs of a queue that run or are in hand, each once;
-- `boots` are its takers with their beats. Few: as many as all workers together have slots, and the dead ones had. A
-- taken list of another type has none.
local function running_ids(name, prefix, started, boots)
  local ids, seen = {}, {}
  local function look(id, status)
    if not seen[id] and redis.pcall('HGET', prefix .. id, 'status') == status then
      seen[id] = true
      ids[#ids + 1] = id
    end
  end
  for _, member in ipairs(redis.call('ZRANGE', started, 0, -1)) do
    look(string.match(member, '^(.*):[^:]*$') or member, 'started')
  end
  for i = 1, #boots, 2 do
    for _, id in ipairs(redis.pcall('LRANGE', name .. ':taken:' .. boots[i], 0, -1)) do
      look(id, 'queued')
    end
  end
  return ids
end
