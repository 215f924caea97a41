-- needs: counter lengthen queue
-- transfer: delete the lock if it is ours, as release does, and hand it to a given waiter,
-- whatever its ticket. Where that one is not there, the first is handed the lock.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value   ARGV[2] our fencing token   ARGV[3] the waiter
-- ARGV[4] 'hold' not to hand on anything: this master is not to be believed
-- 1 deleted, 0 absent or no string, -1 somebody else's, which stays
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local waiter, chosen = waiterOf(ARGV[1]), ARGV[3]

-- lead moves those before the chosen waiter behind it, in their order, until they ask again. If
-- the chosen one asks again, since other masters were slow to hand it the lock, it must not yield
-- to the first.
local function lead()
  local order = redis.pcall('zrange', queue, 0, -1, 'withscores')
  local at = 1
  while order[at] and order[at] ~= chosen do
    at = at + 2
  end
  local by = order[at] and order[at + 1] - order[2] + 1
  for i = 1, by and at - 2 or 0, 2 do
    redis.pcall('zadd', queue, whole(order[i + 1] + by), order[i])
  end
end

-- hand is what give does for the first waiter, and reports whether the chosen one is there.
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
    lead()
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
