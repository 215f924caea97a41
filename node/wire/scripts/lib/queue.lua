-- queue: the library of the scripts that read the queue of a lock.
-- Every master has the queue of a lock: a sorted set of waiters by ticket, and a hash
-- with an entry for each: its deadline on this master's clock in ms, how it is served, and
-- the value of its last ask. A value is WAITER:N, then a space and metadata, if there is
-- any; WAITER is CLIENT/NONCE/NUMBER. How a waiter is served:
--   -        the script grants it the lock
--   NUMBER   the same, with a fencing counter of at least NUMBER
--   w..., r  the script notifies it of its turn, and it asks: exclusive, or shared
-- A pause, in which the lock is left to clients that do not queue, is the first entry of
-- the queue: see yield.lua.

-- pause is the waiter of a pause. It has no client. Its entry is served by w and the length of
-- the pause in ms. A client of the previous version takes it for a departed waiter, and so ends
-- the pause.
local pause = '/'

-- waiterOf returns the waiter of a value, which is the common beginning of all its values. A
-- value that may be from another library is returned whole: some store HOST:PID (S52).
local function waiterOf(value)
  local waiter, nonce = string.match(value, '^([^ /]*/([a-z2-7]*)/W?0?[PC]?[0-9a-z]+):%d')
  return nonce and #nonce == 16 and waiter or value
end

-- clock returns this master's time in seconds and microseconds. A script has one moment, as it has in
-- Redis from version 7.2 on.
local time
local function clock()
  time = time or redis.call('time')
  return time
end

-- now returns this master's time in ms.
local function now()
  local t = clock()
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- base returns the prefix of all keys that are not locks.
local function base(marker)
  return string.sub(marker, 1, -7)
end

-- counterOf returns the key of a lock's fencing counter.
local function counterOf(queue, marker)
  local b = base(marker)
  return b .. 'token:' .. string.sub(queue, #b + #'queue:' + 1)
end

-- channelOf returns the channel of a waiter's client. The client's name is the waiter's up to
-- the last slash.
local function channelOf(marker, waiter)
  return base(marker) .. 'wait:' .. string.match(waiter, '^(.*)/')
end

-- entryOf returns for how many ms a waiter stays registered, how it is served, and its value. A
-- departed waiter has 0 ms or less.
local function entryOf(entries, waiter, moment)
  local entry = redis.pcall('hget', entries, waiter)
  local deadline, how, value = string.match(type(entry) == 'string' and entry or '', '^(%d+) (%S+) (.*)$')
  return deadline and deadline - moment or 0, how, value
end
