-- release_short: what release does where the lock is ours, its counter is up, and
-- nobody waits. That is mostly so, and needs nothing of what stands behind it.
local token = ARGV[2] ~= 'hold' and ARGV[2]
if not ARGV[3] and redis.pcall('get', KEYS[1]) == ARGV[1] and redis.pcall('exists', KEYS[2]) == 0
  and (not token or token == redis.pcall('get', string.sub(KEYS[4], 1, -7) .. 'token:' .. string.sub(KEYS[2], #KEYS[4] + 1))) then
  return redis.call('del', KEYS[1])
end
-- needs: counter lengthen ours queue call
-- release: delete the lock if it is ours, leave the queue, and hand the lock on.
-- Ours is every value of the same waiter, whichever of its asks was the last to
-- arrive here. A lock that stays is nobody's from then on: see ours.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value   ARGV[2] our fencing token, if it is fenced; or '-'
-- ARGV[3] of a lock that may be kept: 'keep', for as long as keep.lua said, or '-' to keep
-- it no longer
-- ARGV[last] 'hold' not to hand on anything: this master is not to be believed
-- 1 deleted or kept, 0 absent or no string, -1 somebody else's, which stays
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local may = ARGV[3] ~= 'hold' and ARGV[3]
local answer, waiter = 0, waiterOf(ARGV[1])

-- rest returns for how many ms the lock of that holder stays. Where keep.lua has not run, or
-- its time is over, that is none: a release has no lock end later (L56).
local function rest(holder)
  local key = base(marker) .. 'kept:' .. string.sub(queue, #marker + 1)
  local ms = may == 'keep' and redis.pcall('get', key) == holder and redis.call('pttl', key)
  redis.pcall('del', key)
  return ms or 0
end

-- keep has the lock stay for so long, as nobody's.
local function keep(holder, ms)
  if redis.pcall('set', lock, kept .. holder, 'PX', ms).err then
    redis.call('pexpire', lock, ms) -- there is no memory for it
  end
end

local holder = redis.pcall('get', lock)
if type(holder) ~= 'string' then
  holder = nil -- absent, or no lock at all
end
local was = holder and string.match(holder, '^' .. kept .. '(.*)') -- its holder, who has released it before
local stays, earlier = false, false -- the lock stays, and ends earlier than it would have
if holder and waiterOf(was or holder) == waiter then
  if ARGV[2] and ARGV[2] ~= 'hold' and ARGV[2] ~= '-' then
    raise(counterOf(queue, marker), ARGV[2])
  end
  stays = was and may == 'keep'
  local ms = may and not stays and rest(holder) or 0
  if ms > 0 then
    stays, earlier = true, redis.call('pttl', lock) > ms
    keep(holder, ms)
  elseif not stays then
    redis.call('del', lock)
  end
  answer = 1
elseif holder then
  answer = -1
end
-- What is deleted is deleted: then nothing may fail any more. Where nothing was, leave
-- may.
if redis.pcall('exists', queue) ~= 0 then
  local led = was and leads(queue, entries, marker, waiter)
  leave(queue, entries, waiter)
  local free = answer == 1 and not stays or answer == 0 and redis.pcall('exists', lock) == 0
  if ARGV[#ARGV] ~= 'hold' then
    if free then
      pcall(give, lock, queue, entries, marker)
    elseif earlier or led then
      pcall(call, lock, queue, entries, marker, earlier and 8 or 1)
    end
  end
end
return answer
