-- needs: number counter queue first tell give quit
-- transfer: delete the lock if it is ours, as release does, and hand it to a given waiter,
-- whatever its ticket. If that waiter is absent, the first one gets the lock.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value   ARGV[2] our fencing token   ARGV[3] the waiter
-- ARGV[4] 'hold': see release
-- 1 deleted, 0 absent or not a string, -1 another client's, which stays
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local waiter, chosen = waiterOf(ARGV[1]), ARGV[3]

-- hand is give for the chosen waiter, and reports whether that waiter is present. It precedes all
-- others for a third of its registration: see ask.lua. Its ticket is the end of that time, in ms,
-- which is lower than any ticket, in us.
local function hand()
  local rest, how, value = entryOf(entries, chosen, now())
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
  passOver(queue, entries, chosen)
  return false
end

local holder, answer = redis.pcall('get', lock), 0
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE', 1, true) then
  return holder -- our user must not read it: nothing is released yet (L97)
elseif type(holder) ~= 'string' then
  holder = nil -- absent, or not a string
end
if holder and waiterOf(holder) == waiter then
  raise(counterOf(queue, marker), ARGV[2])
  redis.call('del', lock)
  answer = 1
elseif holder then
  answer = -1
end
if redis.pcall('exists', queue) ~= 0 then
  quit(queue, entries, waiter, answer == 1)
  leave(queue, entries, pause)
  local hold = ARGV[4] == 'hold'
  if answer == 1 and not hold then
    pcall(hand)
  end
  if redis.pcall('exists', lock) == 0 then
    pass(lock, queue, entries, marker, hold)
  end
end
return answer
