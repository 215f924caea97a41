-- rw: the library, after lengthen, tell and head, of the scripts of a read-write lock.
-- The writer is the lock, a string. Readers are a sorted set of waiters, by their end on
-- this master's clock, and a hash with their values. Waiting writers are also in a sorted
-- set by ticket, their intent: later readers wait behind them.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- KEYS[5] readers   KEYS[6] their values   KEYS[7] intent
local lock, queue, entries, marker, readers, reading, intent

-- about sets the keys of the lock that the functions below work on.
local function about(keys)
  lock, queue, entries, marker, readers, reading, intent = unpack(keys)
end

-- stopReading removes a reader. A user with only one of the two rights leaves half of it; the next release
-- removes the rest (L97).
local function stopReading(waiter)
  redis.call('zrem', readers, waiter)
  redis.call('hdel', reading, waiter)
end

-- sweep removes expired readers.
local function sweep(moment)
  for _, waiter in ipairs(redis.call('zrangebyscore', readers, '-inf', whole(moment))) do
    stopReading(waiter)
  end
end

-- read adds or extends a reader. Its end never becomes earlier: see lengthen.
local function read(waiter, value, ttl, moment)
  local till = math.max(moment + ttl, tonumber(redis.call('zscore', readers, waiter) or 0))
  redis.call('zadd', readers, whole(till), waiter)
  redis.call('hset', reading, waiter, value)
  together(whole(till - moment), readers, reading)
end

-- unqueue removes a waiter that is granted the lock.
local function unqueue(waiter)
  leave(queue, entries, waiter)
  redis.pcall('zrem', intent, waiter)
end

-- expel removes a departed waiter: see passOver.
local function expel(waiter)
  passOver(queue, entries, waiter)
  redis.call('zrem', intent, waiter)
end

-- firstWriter returns the present waiting writer with the lowest ticket. The asker counts as
-- present: its client may not be subscribed yet.
local function firstWriter(moment, asker)
  while true do
    local found = redis.pcall('zrange', intent, 0, 0, 'WITHSCORES')
    if not found[1] then
      return nil
    end
    if entryOf(entries, found[1], moment) > 0 and (found[1] == asker or present(marker, found[1])) then
      return found[1], found[2]
    end
    expel(found[1])
  end
end

-- serve notifies the waiters whose turn it is: the writer if it is first and there are no
-- readers, and otherwise the readers before the writer. It goes on after a departed writer: no
-- later event would notify the waiters behind it.
local function serve(moment, asker)
  if redis.pcall('exists', queue) == 0 or redis.call('exists', lock) == 1 then
    return
  end
  local told = false -- a reader, who goes before the writer
  repeat
    local writer, ticket = firstWriter(moment, asker)
    for _, waiter in ipairs(redis.pcall('zrangebyscore', queue, '-inf', ticket or '+inf')) do
      local rest, how, value = entryOf(entries, waiter, moment)
      local there = rest > 0
      if there and how ~= 'r' and (told or redis.call('zcard', readers) > 0) then
        return
      end
      if not there or not tell(lock, marker, waiter, value, ':t') then
        expel(waiter)
      elseif how ~= 'r' then
        return
      else
        told = true
      end
    end
    if writer then
      expel(writer)
    end
  until not writer
end

-- standing returns the reply to a refused waiter: for how many ms the lock is held, if that
-- is known, and 0.
local function standing(moment)
  local rest = redis.call('pttl', lock)
  local last = redis.call('zrange', readers, -1, -1, 'WITHSCORES')[2]
  if last then
    rest = math.max(rest, tonumber(last) - moment)
  end
  return {rest, 0}
end
