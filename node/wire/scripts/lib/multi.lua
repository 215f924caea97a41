-- multi: the library, after counter and queue, of the scripts that take several locks as one: all or
-- none.
-- KEYS  the locks, then the queue of each, then the entries of each, then the
-- marker
local count_ = (#KEYS - 1) / 3
local marker = KEYS[#KEYS]
local function queueOf(i) return KEYS[count_ + i] end
local function entriesOf(i) return KEYS[2 * count_ + i] end

-- holders returns the value of each lock, or false for an absent one. A key that is not a
-- string, such as the lock of another library, is held by another client, with the value '':
-- mget passes over it.
local function holders()
  local held, strings = redis.call('mget', unpack(KEYS, 1, count_)), 0
  for i = 1, count_ do
    strings = strings + (held[i] and 1 or 0)
  end
  if redis.call('exists', unpack(KEYS, 1, count_)) > strings then
    for i = 1, count_ do
      held[i] = held[i] or redis.call('exists', KEYS[i]) == 1 and ''
    end
  end
  return held
end

-- isOurs reports whether a value belongs to the waiter.
local function isOurs(holder, waiter)
  return holder and waiterOf(holder) == waiter
end

-- raiseAll raises all counters to the token, and reports whether one was below.
local function raiseAll(token)
  local raised = false
  for i = 1, count_ do
    raised = raise(counterOf(queueOf(i), marker), token) or raised
  end
  return raised
end
