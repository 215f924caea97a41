-- leads: the library, after head, of the scripts that release a lock that may be kept.

-- leads reports whether a waiter is the first present one; in a pause, every waiter counts as that.
-- When it leaves a lock that is kept, the next one is notified: all waiters that were notified before
-- may have left (L55).
local function leads(queue, entries, marker, waiter)
  local fine, one = pcall(head, queue, entries, marker, nil, waiter)
  return fine and (one == waiter or one == pause)
end
