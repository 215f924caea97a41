-- first: the library, after queue, of the scripts that pass over departed waiters.

-- Who is removed from a queue, and what fails if that is refused:
--   leave     a waiter that was granted the lock, or wants another: nothing; the place ends with
--             the registration
--   passOver  a departed one: the script, if the place stays
--   quit      one whose lock is released: the release, if it changes nothing and the waiter stays

-- leave removes a waiter, and reports whether it did. Either half is enough: a waiter without an
-- entry counts as departed.
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
