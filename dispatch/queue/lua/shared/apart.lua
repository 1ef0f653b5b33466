-- apart(read, ...) answers what read(...) answers, or the error that it raised as an element of the answer: what
-- stands in the keys of one queue costs no other. For scripts that change nothing.
local function apart(read, ...)
  local is_read, answer = pcall(read, ...)
  if is_read then
    return answer
  end
  return redis.error_reply(type(answer) == 'table' and answer.err or answer)
end
