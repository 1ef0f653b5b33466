-- Purpose: read switches and judge each by this server's clock, all at one instant.
-- KEYS: one or more switch keys.
-- Answers: {now in ms, then for each key {holds (1 or 0), by, reason, since, until}}, missing fields as ''.
local now = now_ms()
local answer = {string.format('%.0f', now)}
for i = 1, #KEYS do
  local row = {holds(KEYS[i], now) and 1 or 0}
  for _, value in ipairs({'by', 'reason', 'since', 'until'}) do
    local text = redis.pcall('HGET', KEYS[i], value)
    table.insert(row, type(text) == 'string' and text or '')
  end
  table.insert(answer, row)
end
return answer
