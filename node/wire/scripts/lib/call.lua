-- call: what stands behind queue in the scripts that release a lock that may be kept.

-- call has the first waiters that are still there ask, and so learn when a lock ends: one of each
-- of so many clients, and so many of the first. All but one may leave before: whoever asks then has
-- the lock handed to the first that is there (L55). Behind 512 nobody is looked for.
local function call(lock, queue, entries, marker, many)
  local moment, told, clients, behind = now(), {}, 0, 0
  repeat
    local next, _, _, value = first(queue, entries, moment, behind)
    local client = next and channelOf(marker, next)
    if next and (told[client] and behind >= many or tell(lock, marker, next, value, ':t')) then
      clients = clients + (told[client] and 0 or 1)
      told[client] = true
      behind = behind + 1
    elseif next then
      leave(queue, entries, next, true)
    end
  until not next or clients == many or behind == 512
end

-- leads reports whether nobody who is there stands before a waiter. When it leaves a lock that is
-- kept, the next one is told: all that were may have left (L55).
local function leads(queue, entries, marker, waiter)
  local fine, one = pcall(head, queue, entries, marker, nil, waiter)
  return fine and one == waiter
end
