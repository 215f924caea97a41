-- register: the library, after number, lengthen and queue, of the scripts that queue a waiter.

-- askOf returns N of a value WAITER:N.
local function askOf(value)
  return tonumber(string.match(value, '^[^ ]*:(%d+)'))
end

-- overtaken reports whether a later ask of the waiter has arrived before.
local function overtaken(entries, waiter, n)
  local _, _, known = entryOf(entries, waiter, 0)
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

-- The rest is about the holder, for the reply to a waiter that is refused.

-- kindOf returns the kind of a holder: 'C' of a cached lock, 'P' if it polls or only tries, nil
-- if it is of another library, and '' otherwise, also without a holder.
local function kindOf(holder)
  if not holder then
    return ''
  end
  return string.match(holder, '^[^ /]*/[a-z2-7]*/0?([PC]?)[0-9a-z]*:%d')
end

-- queues returns whether a holder of that kind queues when it wants the lock again: 0 it does;
-- 1 no, it uses another library, which publishes nothing on release; 2 no, it polls or only
-- tries.
local function queues(kind)
  return kind == 'P' and 2 or kind and 0 or 1
end
