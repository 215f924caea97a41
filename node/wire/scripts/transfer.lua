-- needs: counter lengthen queue
-- transfer: delete the lock if it is ours, as release does, and hand it to a given waiter,
-- whatever its ticket. Where that one is not there, the first is handed the lock.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value   ARGV[2] our fencing token   ARGV[3] the waiter
-- ARGV[4] 'hold' not to hand on anything: this master is not to be believed
-- 1 deleted, 0 absent or no string, -1 somebody else's, which stays
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local waiter, chosen = waiterOf(ARGV[1]), ARGV[3]

-- hand is what give does for the first waiter, and reports whether the chosen one is there. It goes
-- before all others for a third of its time: see ask.lua. Its place says until when, in ms, which is
-- less than any ticket, in us.
local function hand()
  local entry = redis.pcall('hget', entries, chosen)
  local deadline, how, value = string.match(type(entry) == 'string' and entry or '', '^(%d+) (%S+) (.*)$')
  local rest = deadline and deadline - now() or 0
  if rest <= 0 or string.find(how, '^[wr]') then
    return false
  end
  local counter = how ~= '-' and count(counterOf(queue, marker), how)
  redis.call('set', lock, value, 'PX', whole(rest))
  if tell(lock, marker, chosen, value, counter and ':' .. whole(counter) or '') then
    redis.pcall('zadd', queue, 'XX', whole(now() + math.floor(rest / 3)), chosen)
    return true
  end
  redis.call('del', lock)
  leave(queue, entries, chosen, true)
  return false
end

local holder, answer = redis.pcall('get', lock), 0
if type(holder) ~= 'string' then
  holder = nil -- absent, or no lock at all
end
if holder and waiterOf(holder) == waiter then
  raise(counterOf(queue, marker), ARGV[2])
  redis.call('del', lock)
  answer = 1
elseif holder then
  answer = -1
end
-- What is deleted is deleted: then nothing may fail any more.
if redis.pcall('exists', queue) ~= 0 then
  leave(queue, entries, waiter)
  leave(queue, entries, nobody)
  if ARGV[4] ~= 'hold' then
    if answer == 1 then
      pcall(hand)
    end
    if redis.pcall('exists', lock) == 0 then
      pcall(give, lock, queue, entries, marker)
    end
  end
end
return answer
