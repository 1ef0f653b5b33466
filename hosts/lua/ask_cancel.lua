-- Purpose: ask whoever runs a job to stop it, as if nobody had been asked or had answered before.
-- KEYS: the answer; the request.
-- ARGV: id of the request; its lifetime in ms.
-- Answers: nothing. May be repeated.
-- The removal comes first: a full server refuses SET as a script's first write, and stopping must not need room.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
