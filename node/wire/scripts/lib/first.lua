-- first: the library, after queue, of the scripts that pass over departed waiters.

-- leave removes a waiter from a queue if it can, and reports whether it did. A waiter without an
-- entry has left.
local function leave(queue, entries, waiter)
  local place, entry = redis.pcall('zrem', queue, waiter), redis.pcall('hdel', entries, waiter)
  return type(place) ~= 'table' or type(entry) ~= 'table'
end

-- passOver removes a departed waiter. It fails if the place cannot be removed: the caller goes on
-- with the next waiter, and would meet this one again without end (L27).
local function passOver(queue, entries, waiter)
  redis.call('zrem', queue, waiter)
  redis.pcall('hdel', entries, waiter)
end

-- channelOf returns the channel of a waiter's client. The client's name is the waiter's up to
-- the last slash.
local function channelOf(marker, waiter)
  return base(marker) .. 'wait:' .. string.match(waiter, '^(.*)/')
end

-- first returns the registered waiter with the lowest ticket, after the given number of others:
-- its name, for how many ms it stays registered, how it is served, and its value. It removes
-- expired waiters. A pause with more time left than its length has expired, too: the clock was
-- set back (L68).
local function first(queue, entries, moment, behind)
  while true do
    local waiter = redis.pcall('zrange', queue, behind or 0, behind or 0)[1]
    if not waiter then
      return nil
    end
    local rest, how, value = entryOf(entries, waiter, moment or now())
    if rest > 0 and (waiter ~= pause or rest <= (tonumber(string.sub(how, 2)) or 0)) then
      return waiter, rest, how, value
    end
    passOver(queue, entries, waiter)
  end
end
