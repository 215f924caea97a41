-- head: the library, after first, of the scripts that ask which waiter is first.

-- present reports whether the client of a waiter is subscribed. A dead client is not, and its
-- waiters are removed, even before their turn (L40). Without the PUBSUB permission, every
-- waiter counts as present.
local function present(marker, waiter)
  return redis.pcall('pubsub', 'numsub', channelOf(marker, waiter))[2] ~= 0
end

-- head returns the first waiter whose client is present, and removes absent ones. The asker
-- counts as present: its client may not be subscribed yet.
local function head(queue, entries, marker, moment, asker)
  while true do
    local waiter = first(queue, entries, moment)
    if not waiter or waiter == asker or waiter == pause or present(marker, waiter) then
      return waiter
    end
    passOver(queue, entries, waiter)
  end
end

-- before reports whether a waiter with that ticket precedes another one.
local function before(ticket, waiter, otherTicket, other)
  local a, b = tonumber(ticket), tonumber(otherTicket)
  return a < b or a == b and waiter < other
end
