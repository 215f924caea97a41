-- release_short: what release does where the lock is ours, its counter is up, and
-- nobody waits. That is mostly so, and needs nothing of what stands behind it.
local token = ARGV[2] ~= 'hold' and ARGV[2]
if redis.pcall('get', KEYS[1]) == ARGV[1] and redis.pcall('exists', KEYS[2]) == 0
  and (not token or token == redis.pcall('get', string.sub(KEYS[4], 1, -7) .. 'token:' .. string.sub(KEYS[2], #KEYS[4] + 1))) then
  return redis.call('del', KEYS[1])
end
-- needs: counter lengthen queue
-- release: delete the lock if it is ours, leave the queue, and hand the lock on.
-- Ours is every value of the same waiter, whichever of its asks was the last to
-- arrive here.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value   ARGV[2] our fencing token, if it is fenced
-- ARGV[last] 'hold' not to hand on anything: this master is not to be believed
-- 1 deleted, 0 absent or no string, -1 somebody else's, which stays
local answer, waiter = 0, waiterOf(ARGV[1])
local holder = redis.pcall('get', KEYS[1])
if type(holder) ~= 'string' then
  holder = nil -- absent, or no lock at all
end
if holder and waiterOf(holder) == waiter then
  if ARGV[2] and ARGV[2] ~= 'hold' then
    raise(counterOf(KEYS[2], KEYS[4]), ARGV[2])
  end
  redis.call('del', KEYS[1])
  answer = 1
elseif holder then
  answer = -1
end
-- What is deleted is deleted: then nothing may fail any more. Where nothing was, leave
-- may.
if redis.pcall('exists', KEYS[2]) ~= 0 then
  leave(KEYS[2], KEYS[3], waiter)
  local free = answer == 1 or answer == 0 and redis.pcall('exists', KEYS[1]) == 0
  if free and ARGV[#ARGV] ~= 'hold' then
    pcall(give, KEYS[1], KEYS[2], KEYS[3], KEYS[4])
  end
end
return answer
