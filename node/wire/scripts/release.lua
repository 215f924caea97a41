-- release_short: release if the lock is ours, its counter is not below its token, and there
-- are no waiters. This is the usual case, and needs no function of the libraries.
local holder, queued = redis.pcall('get', KEYS[1]), redis.pcall('exists', KEYS[2]) ~= 0
local token = ARGV[2] ~= 'hold' and ARGV[2]
if holder == ARGV[1] and not queued and not ARGV[3]
  and (not token or token == redis.pcall('get', string.sub(KEYS[4], 1, -7) .. 'token:' .. string.sub(KEYS[2], #KEYS[4] + 1))) then
  return redis.call('del', KEYS[1])
end
-- needs: number counter kept queue first tell give quit
-- later leads from head leads
-- release: delete the lock if it is ours, leave the queue, and hand the lock on.
-- Every value of the same waiter is ours, whichever of its asks arrived last at this
-- master. A lock that stays has no holder from then on: see kept.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value   ARGV[2] our fencing token, if it is fenced; or '-'
-- ARGV[3] of a lock that may be kept: 'keep', for the time set by keep.lua, or '-' to keep
-- it no longer
-- ARGV[last] 'hold': this master is not trusted; see pass
-- 1 deleted or kept, 0 absent or not a string, -1 another client's, which stays
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local may = ARGV[3] ~= 'hold' and ARGV[3]
local answer, waiter = 0, waiterOf(ARGV[1])

if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE', 1, true) then
  return holder -- our user must not read it: nothing is released yet (L97)
elseif type(holder) ~= 'string' then
  holder = nil -- absent, or not a string
end
local was = holder and string.sub(holder, 1, 1) == kept and string.sub(holder, 2) -- its holder, who has released it before
local stays, earlier = false, false -- the lock stays, and ends earlier than it would have
if holder and (holder == ARGV[1] or waiterOf(was or holder) == waiter) then
  if ARGV[2] and ARGV[2] ~= 'hold' and ARGV[2] ~= '-' then
    raise(counterOf(queue, marker), ARGV[2])
  end
  stays = was and may == 'keep'
  if may and not stays then
    -- The lock stays for as long as keep.lua has said, without a holder. A release never makes a lock
    -- end later (L56).
    local key = base(marker) .. 'kept:' .. string.sub(queue, #marker + 1)
    local ms = may == 'keep' and redis.pcall('get', key) == holder and redis.call('pttl', key) or 0
    redis.pcall('del', key)
    if ms > 0 then
      stays, earlier = true, redis.call('pttl', lock) > ms
      if redis.pcall('set', lock, kept .. holder, 'PX', ms).err then
        redis.call('pexpire', lock, ms) -- the master is out of memory
      end
    end
  end
  if not stays then
    redis.call('del', lock)
  end
  answer = 1
elseif holder then
  answer = -1
end
if queued then
  local leads = was and later()
  local led = leads and leads(queue, entries, marker, waiter)
  local changed = answer == 1 and not (was and stays)
  quit(queue, entries, waiter, changed)
  local free = answer == 1 and not stays or answer == 0 and redis.pcall('exists', lock) == 0
  if free then
    pass(lock, queue, entries, marker, ARGV[#ARGV] == 'hold')
  elseif earlier or led then
    pcall(call, lock, queue, entries, marker, earlier and 8 or 1)
  end
end
return answer
