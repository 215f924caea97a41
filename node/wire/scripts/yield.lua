-- needs: counter lengthen queue
-- yield: leave the lock to those who do not queue, of another library or by Polling and TryLock,
-- for so long. It comes right before the release. Who waits is told, and asks again then.
-- The holder may still be queued, since the lock was handed to it, and does not wait.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] the value of the holder   ARGV[2] for how long, in ms
-- 1, or 0 where nobody waits, so that the lock will be free anyway
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
leave(queue, entries, waiterOf(ARGV[1]))
if redis.pcall('exists', queue) == 0 then
  return 0
end
local refused = register(queue, entries, nobody, -1, ARGV[2], 'w' .. ARGV[2], nobody, now())
if refused then
  return refused
end
call(lock, queue, entries, marker, 8)
return 1
