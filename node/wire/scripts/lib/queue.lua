-- queue: the library, after counter, of the scripts that hand a lock on.
-- Every master has the queue of a lock: a sorted set of waiters by ticket, and a hash
-- with an entry for each: its deadline on this master's clock in ms, how it is served, and
-- the value of its last ask. A value is WAITER:N, then a space and metadata, if there is
-- any; WAITER is CLIENT/NONCE/NUMBER. How a waiter is served:
--   -        the script grants it the lock
--   NUMBER   the same, with a fencing counter of at least NUMBER
--   w..., r  the script notifies it of its turn, and it asks: exclusive, or shared
-- A pause, in which the lock is left to clients that do not queue, is the first entry of
-- the queue: see yield.lua.

-- pause is the waiter of a pause. It has no client. Its entry is served by w and the length of
-- the pause in ms. A client of the previous version takes it for a departed waiter, and so ends
-- the pause.
local pause = '/'

-- waiterOf returns the waiter of a value, which is the common beginning of all its values. A
-- value that may be from another library is returned whole: some store HOST:PID (S52).
local function waiterOf(value)
  local waiter, nonce = string.match(value, '^([^ /]*/([a-z2-7]*)/W?0?[PC]?[0-9a-z]+):%d')
  return nonce and #nonce == 16 and waiter or value
end

-- leave removes a waiter from a queue. It fails while the master accepts no writes, so that
-- the client retries later (L28). Without the permission to write, the waiter stays queued. If
-- the waiter has departed, that is an error, too: the caller goes on with the next waiter, and
-- would meet this one again without end (L27).
local function leave(queue, entries, waiter, gone)
  local left = redis.pcall('zrem', queue, waiter)
  if type(left) == 'table' and (gone or string.find(left.err, 'MISCONF')
    or string.find(left.err, 'NOREPLICAS') or string.find(left.err, 'READONLY')) then
    redis.call('zrem', queue, waiter) -- fails in the words of a command, whatever the version
  end
  redis.pcall('hdel', entries, waiter)
end

-- now returns this master's time in ms.
local function now()
  local t = redis.call('time')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- base returns the prefix of all keys that are not locks.
local function base(marker)
  return string.sub(marker, 1, -7)
end

-- counterOf returns the key of a lock's fencing counter.
local function counterOf(queue, marker)
  local b = base(marker)
  return b .. 'token:' .. string.sub(queue, #b + #'queue:' + 1)
end

-- shown returns this master's marker, or '' if the marker proves nothing. A server that was a
-- replica after the marker was written has another server's keys, and these may contain the
-- server's own earlier marker (S50). A valid marker names the replication ID from the last
-- promotion. pcall: without the INFO permission, heartbeats cannot see a promotion either.
local function shown(marker)
  local mark = redis.pcall('get', marker)
  if type(mark) ~= 'string' then
    return ''
  end
  local told = redis.pcall('info', 'replication')
  if type(told) ~= 'string' or string.find(told, 'master_replid2:0000000000000000000000000000000000000000', 1, true) then
    return mark -- it was never a replica
  end
  if string.find(told, 'master_replid2:', 1, true)
    and not string.find(mark, '.' .. string.match(told, 'master_replid:(%x+)'), 1, true) then
    return ''
  end
  return mark
end

-- channelOf returns the channel of a waiter's client. The client's name is the waiter's up to
-- the last slash.
local function channelOf(marker, waiter)
  return base(marker) .. 'wait:' .. string.match(waiter, '^(.*)/')
end

-- present reports whether the client of a waiter is subscribed. A dead client is not, and its
-- waiters are removed, even before their turn (L40). Without the PUBSUB permission, every
-- waiter counts as present.
local function present(marker, waiter)
  return redis.pcall('pubsub', 'numsub', channelOf(marker, waiter))[2] ~= 0
end

-- tell notifies a waiter, on the channel of its client: MARKER, a tab, this master's time, a
-- newline, the LENGTH of the lock's name, the kind of notice, a space, the name and the value;
-- see ParseNotice. By the marker and the time the client recognizes a master that lost its
-- memory, or whose clock was set forward. tell returns false if the client is not subscribed.
-- pcall: without the PUBLISH permission the lock is still handed on, and the waiter finds it
-- with its next ask.
local function tell(lock, marker, waiter, value, what)
  local t = redis.call('time')
  local mark = shown(marker) .. '\t' .. t[1] .. ' ' .. t[2]
  return redis.pcall('publish', channelOf(marker, waiter), mark .. '\n' .. #lock .. what .. ' ' .. lock .. value) ~= 0
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
    local entry = redis.pcall('hget', entries, waiter)
    local deadline, how, value = string.match(type(entry) == 'string' and entry or '', '^(%d+) (%S+) (.*)$')
    local rest = deadline and deadline - (moment or now()) or 0
    if rest > 0 and (waiter ~= pause or rest <= (tonumber(string.sub(how, 2)) or 0)) then
      return waiter, rest, how, value
    end
    leave(queue, entries, waiter, true)
  end
end

-- head returns the first waiter whose client is present, and removes absent ones. The asker
-- counts as present: its client may not be subscribed yet.
local function head(queue, entries, marker, moment, asker)
  while true do
    local waiter = first(queue, entries, moment)
    if not waiter or waiter == asker or waiter == pause or present(marker, waiter) then
      return waiter
    end
    leave(queue, entries, waiter, true)
  end
end

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
      leave(queue, entries, waiter, true)
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
        leave(queue, entries, pause, true)
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
      leave(queue, entries, waiter, true)
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
