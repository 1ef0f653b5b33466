-- A claim is `<worker>#<job>#<token>`; neither a worker's name nor a token has a '#' in it. Anything else that
-- stands in a slot was not written by us: nobody's claim, and the slot is taken all the same until it expires.

-- Longer than every claim. No more is read of what stands there.
local LONGEST = 512

-- claim_in(key) answers what stands in a slot: false when it is free, '' for what is no text or too long.
local function claim_in(key)
  local text = redis.pcall('GETRANGE', key, 0, LONGEST)
  if type(text) == 'table' or #text > LONGEST then
    return ''
  end
  return text ~= '' and text or redis.call('EXISTS', key) == 1 and ''
end

-- look_into(slots, limit, job, claim) answers which of the slots has this claim; which other one the job may have; the
-- others that name it; what would stand for ever. The numbers beyond the limit are none that it may have, but count.
local function look_into(slots, limit, job, claim)
  local kept, left, free, stale, lasting, others = nil, nil, nil, {}, {}, 0
  for i, key in ipairs(slots) do
    local found = claim_in(key)
    if found == claim then
      kept = key
    elseif not found then
      free = free or i <= limit and key or nil
    elseif string.match(found, '^[^#]*#(.*)#[^#]*$') == job then
      left = left or i <= limit and key or nil
      stale[#stale + 1] = key
    else
      others = others + 1
      if redis.call('PTTL', key) == -1 then
        lasting[#lasting + 1] = key
      end
    end
  end
  return kept or others < limit and (left or free) or nil, stale, lasting
end

-- take_slot(slots, limit, job, claim, ttl) renews the claim, or takes one of the first `limit` of these slots while
-- fewer than that are others' in all of them. A slot that names the job is the job's, whoever wrote it: only one pop
-- has it in hand. Answers whether it has one. What would stand for ever is no lease and gets the lifetime of one.
local function take_slot(slots, limit, job, claim, ttl)
  local slot, stale, lasting = look_into(slots, limit, job, claim)
  if slot then
    -- Before all else: it is what a full server refuses.
    redis.call('SET', slot, claim, 'PX', ttl)
  end
  for _, key in ipairs(stale) do
    if key ~= slot then
      redis.call('DEL', key)
    end
  end
  for _, key in ipairs(lasting) do
    redis.call('PEXPIRE', key, ttl)
  end
  return slot ~= nil
end
