-- call: what stands behind queue in the scripts that release a lock that may be kept.

-- leads reports whether nobody who is there stands before a waiter. When it leaves a lock that is
-- kept, the next one is told: all that were may have left (L55). So it is where nobody stands
-- before all.
local function leads(queue, entries, marker, waiter)
  local fine, one = pcall(head, queue, entries, marker, nil, waiter)
  return fine and (one == waiter or one == nobody)
end
