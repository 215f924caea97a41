-- needs: number counter lengthen queue first tell give register
-- yield: begin a pause, in which the lock is left to clients that do not queue: of another
-- library, or by Polling and TryLock. It comes right before the release. The waiters are notified,
-- and ask again after the pause. The holder may still be queued, if the lock was handed to it.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] the value of the holder   ARGV[2] the length of the pause in ms
-- 1, or 0 without waiters: then the release makes the lock free anyway
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
leave(queue, entries, waiterOf(ARGV[1]))
if redis.pcall('exists', queue) == 0 then
  return 0
end
local refused = register(queue, entries, pause, -1, ARGV[2], 'w' .. ARGV[2], pause, now())
if refused then
  return refused
end
call(lock, queue, entries, marker, 8)
return 1
