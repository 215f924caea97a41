-- give: the library, after counter, first and tell, of the scripts that hand a lock on.

-- call notifies the first present waiters to ask, since the lock ends earlier than they know, or is
-- free: one waiter of each of many clients, and in any case the first many waiters. It returns the
-- number of these clients. One of them is enough: its ask hands the lock to the first waiter present
-- (L55). call looks at no more than 512 waiters.
local function call(lock, queue, entries, marker, many)
  local moment, told, clients, behind = now(), {}, 0, 0
  repeat
    local waiter, _, _, value = first(queue, entries, moment, behind)
    local client = waiter and channelOf(marker, waiter)
    if waiter == pause or waiter and told[client] and behind >= many then
      behind = behind + 1
    elseif waiter and tell(lock, marker, waiter, value, ':t') then
      clients = clients + (told[client] and 0 or 1)
      told[client] = true
      behind = behind + 1
    elseif waiter then
      passOver(queue, entries, waiter)
    end
  until not waiter or clients == many or behind == 512
  return clients
end

-- give hands a free lock to the present waiter with the lowest ticket, or notifies the waiter
-- of its turn. The waiter stays queued: the grants may not be a majority, and then it asks
-- again. The asker is not notified, since the reply tells it: give returns whether it got the
-- lock, and the counter. Readers are notified together: no later event would notify the second
-- (L29). In a pause, the first waiter is notified to ask how long the pause lasts: the
-- waiters that knew may have left.
local function give(lock, queue, entries, marker, asker, moment)
  local readers, there = 0, false
  while true do
    local waiter, rest, how, value = first(queue, entries, moment, readers)
    if waiter == pause then
      if not asker and call(lock, queue, entries, marker, 1) == 0 then
        passOver(queue, entries, pause)
      end
      return false
    end
    if not waiter or readers > 0 and how ~= 'r' then
      return false
    end
    if string.find(how, '^[wr]') then
      there = waiter == asker or tell(lock, marker, waiter, value, ':t')
      if there and how ~= 'r' then
        return false
      end
    else
      local counter = how ~= '-' and count(counterOf(queue, marker), how)
      redis.call('set', lock, value, 'PX', whole(rest)) -- if refused, no waiter is notified (S46)
      if waiter == asker or tell(lock, marker, waiter, value, counter and ':' .. whole(counter) or '') then
        return waiter == asker, counter
      end
      redis.call('del', lock)
    end
    if there then
      readers = readers + 1
    else
      passOver(queue, entries, waiter)
    end
  end
end

-- pass hands a free lock on. A client that does not trust this master has the first waiter ask instead:
-- that one may trust it (L92). The release stands, whatever fails here.
local function pass(lock, queue, entries, marker, hold)
  if hold then
    pcall(call, lock, queue, entries, marker, 1)
  else
    pcall(give, lock, queue, entries, marker)
  end
end
