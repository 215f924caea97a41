-- register: the library, after lengthen and queue, of the scripts that queue a waiter.

-- askOf returns N of a value WAITER:N.
local function askOf(value)
  return tonumber(string.match(value, '^[^ ]*:(%d+)'))
end

-- overtaken reports whether a later ask of the waiter has arrived before.
local function overtaken(entries, waiter, n)
  local entry = redis.pcall('hget', entries, waiter)
  local known = type(entry) == 'string' and string.match(entry, '^%d+ %S+ (.*)$')
  return known and askOf(known) > n
end

-- register queues a waiter for stay ms, or refreshes its entry. It returns the error of a user
-- without the permission.
local function register(queue, entries, waiter, ticket, stay, how, value, moment)
  local queued = redis.pcall('zadd', queue, ticket, waiter)
  if type(queued) == 'table' and queued.err then
    return queued
  end
  redis.call('hset', entries, waiter, whole(moment + stay) .. ' ' .. how .. ' ' .. value)
  together(stay, queue, entries)
end

-- before reports whether a waiter with that ticket precedes another one.
local function before(ticket, waiter, otherTicket, other)
  local a, b = tonumber(ticket), tonumber(otherTicket)
  return a < b or a == b and waiter < other
end

-- left returns for how many more ms a lock is held, or a pause lasts.
local function left(lock, queue, entries)
  local ms = redis.call('pttl', lock)
  if ms == -2 then
    local waiter, rest = first(queue, entries)
    ms = waiter == pause and rest or ms
  end
  return ms
end

-- queues returns whether the holder of a lock queues when it wants the lock again: 0 it does;
-- 1 no, it uses another library, which publishes nothing on release; 2 no, it polls or only
-- tries.
local function queues(holder)
  if not holder or string.find(holder, '^[^ /]*/[a-z2-7]*/C?[0-9a-z]*:%d') then
    return 0
  end
  return string.find(holder, '^[^ /]*/[a-z2-7]*/0?P[0-9a-z]*:%d') and 2 or 1
end

-- want notifies the holder of a cached lock that another client waits for the lock.
local function want(lock, marker, holder)
  if holder and string.find(holder, '^[^ /]*/[a-z2-7]*/C[0-9a-z]*:%d') then
    tell(lock, marker, waiterOf(holder), holder, ':c')
  end
end
