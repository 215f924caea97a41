-- queue: what stands before the scripts that wait or hand on.
-- Those who wait for a lock are queued at every master: a sorted set of waiters
-- by ticket, and a hash with the entry of each: its deadline on this master's
-- clock in ms, how it is served, and the value of its last ask. A value is
-- WAITER:N, and metadata behind a space; WAITER is CLIENT/NONCE/NUMBER. How it is served:
--   -        the lock is given to it
--   NUMBER   so, with a fencing counter of at least that
--   w..., r  it is told when it is its turn, and asks: exclusive, or shared
-- While the lock is left to those who do not queue, nobody stands before all others: see
-- yield.lua.

-- nobody is a waiter without a client. Behind its w stands for how many ms it came. A client of
-- the version before takes it for one that has departed, and so ends the pause.
local nobody = '/'

-- waiterOf returns what the values of all asks of one waiter begin with. A value that is
-- not certainly of this library stands for itself: others store HOST:PID (S52).
local function waiterOf(value)
  local waiter, nonce = string.match(value, '^([^ /]*/([a-z2-7]*)/W?0?[PC]?[0-9a-z]+):%d')
  return nonce and #nonce == 16 and waiter or value
end

local function askOf(value)
  return tonumber(string.match(value, '^[^ ]*:(%d+)'))
end

-- queues tells whether the holder of a lock takes its turn among those who wait: 0 it does,
-- 1 no: it is of another library, and sends no message when it releases, 2 no: it polls or only
-- tries.
local function queues(holder)
  if not holder or string.find(holder, '^[^ /]*/[a-z2-7]*/C?[0-9a-z]*:%d') then
    return 0
  end
  return string.find(holder, '^[^ /]*/[a-z2-7]*/0?P[0-9a-z]*:%d') and 2 or 1
end

-- leave takes a waiter out of a queue. It fails where the master takes no writes now,
-- so that it is asked again later (L28). A user who may not stays queued; but where the
-- waiter has gone that fails, too: who goes on with the next one would meet it for ever
-- (L27).
local function leave(queue, entries, waiter, gone)
  local left = redis.pcall('zrem', queue, waiter)
  if type(left) == 'table' and (gone or string.find(left.err, 'MISCONF')
    or string.find(left.err, 'NOREPLICAS') or string.find(left.err, 'READONLY')) then
    redis.call('zrem', queue, waiter) -- fails in the words of a command, whatever the version
  end
  redis.pcall('hdel', entries, waiter)
end

-- now is asked for when somebody waits, and not before: Redis before 5 refuses
-- to write after it.
local function now()
  local t = redis.call('time')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- base is what the names of all keys beside the locks begin with.
local function base(marker)
  return string.sub(marker, 1, -7)
end

-- counterOf returns the key of a lock's fencing counter.
local function counterOf(queue, marker)
  local b = base(marker)
  return b .. 'token:' .. string.sub(queue, #b + #'queue:' + 1)
end

-- shown returns this master's marker, as far as it proves anything. A server that was a
-- replica since the marker was written has another server's keys, which may contain the
-- marker that it had before (S50): then it shows none. The marker names the replication ID
-- that the server got at its last promotion. pcall: where INFO is refused, heartbeats see
-- no more either.
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

-- channelOf names the channel of a waiter's client, which is its name up to the last
-- slash.
local function channelOf(marker, waiter)
  return base(marker) .. 'wait:' .. string.match(waiter, '^(.*)/')
end

-- present reports whether the client of a waiter listens. The client of a waiter that has
-- died does not, and need not be waited for, also where it could not be served yet (L40).
-- A user who may not ask takes every waiter for present.
local function present(marker, waiter)
  return redis.pcall('pubsub', 'numsub', channelOf(marker, waiter))[2] ~= 0
end

-- tell publishes to a waiter, on the channel of its client: LENGTH LOCK VALUE, without the
-- second space; what stands behind the length says what of: see ParseNotice. Before it stand this master's
-- marker and clock: a master that lost its memory is not believed, and neither is
-- one whose clock was set forward. Whoever has gone has no subscription, and nobody is told: false. pcall: a user who may not
-- publish can still hand the lock on, and the waiter finds it at its next ask.
local function tell(lock, marker, waiter, value, what)
  local t = redis.call('time')
  local mark = shown(marker) .. '\t' .. t[1] .. ' ' .. t[2]
  return redis.pcall('publish', channelOf(marker, waiter), mark .. '\n' .. #lock .. what .. ' ' .. lock .. value) ~= 0
end

-- want tells the client of a cached lock that another one waits for it.
local function want(lock, marker, holder)
  if holder and string.find(holder, '^[^ /]*/[a-z2-7]*/C[0-9a-z]*:%d') then
    tell(lock, marker, waiterOf(holder), holder, ':c')
  end
end

-- first returns the waiter with the lowest ticket that is still registered, behind so
-- many: its name, for how long, how it is served, and its value. Nobody stays for longer than it
-- came for: the clock was set back since, and there is no client by whose departure it would end
-- (L68).
local function first(queue, entries, moment, behind)
  while true do
    local waiter = redis.pcall('zrange', queue, behind or 0, behind or 0)[1]
    if not waiter then
      return nil
    end
    local entry = redis.pcall('hget', entries, waiter)
    local deadline, how, value = string.match(type(entry) == 'string' and entry or '', '^(%d+) (%S+) (.*)$')
    local rest = deadline and deadline - (moment or now()) or 0
    if rest > 0 and (waiter ~= nobody or rest <= (tonumber(string.sub(how, 2)) or 0)) then
      return waiter, rest, how, value
    end
    leave(queue, entries, waiter, true)
  end
end

-- head is first for those whose client is present; asker, which is about to be answered,
-- may not listen yet.
local function head(queue, entries, marker, moment, asker)
  while true do
    local waiter = first(queue, entries, moment)
    if not waiter or waiter == asker or waiter == nobody or present(marker, waiter) then
      return waiter
    end
    leave(queue, entries, waiter, true)
  end
end

-- left returns for how many ms a lock is held, or left to those who do not queue.
local function left(lock, queue, entries)
  local ms = redis.call('pttl', lock)
  if ms == -2 then
    local waiter, rest = first(queue, entries)
    ms = waiter == nobody and rest or ms
  end
  return ms
end

-- call has the first waiters that are still there ask, and so learn when a lock ends: one of each
-- of so many clients, and so many of the first. It returns how many clients these are. All but one
-- may leave before: whoever asks then has the lock handed to the first that is there (L55). Behind
-- 512 nobody is looked for.
local function call(lock, queue, entries, marker, many)
  local moment, told, clients, behind = now(), {}, 0, 0
  repeat
    local next, _, _, value = first(queue, entries, moment, behind)
    local client = next and channelOf(marker, next)
    if next == nobody or next and told[client] and behind >= many then
      behind = behind + 1
    elseif next and tell(lock, marker, next, value, ':t') then
      clients = clients + (told[client] and 0 or 1)
      told[client] = true
      behind = behind + 1
    elseif next then
      leave(queue, entries, next, true)
    end
  until not next or clients == many or behind == 512
  return clients
end

-- give hands a lock that is free to the waiter with the lowest ticket that is
-- still there, or tells it that it is its turn. The waiter stays queued: what it
-- was given may be too little, and then it asks again. asker need not be told,
-- it is about to be answered: whether it was given the lock, and its counter.
-- Readers are told together: nobody else would tell those behind the first (L29). Where the
-- lock is left to those who do not queue, the first is told to ask how long, since all that were
-- told before may have left.
local function give(lock, queue, entries, marker, asker, moment)
  local readers, there = 0, false
  while true do
    local waiter, rest, how, value = first(queue, entries, moment, readers)
    if waiter == nobody then
      if not asker and call(lock, queue, entries, marker, 1) == 0 then
        leave(queue, entries, nobody, true)
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
      redis.call('set', lock, value, 'PX', whole(rest)) -- where that is refused nobody is told (S46)
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

-- together has a sorted set live for another ttl ms at least, and what is stored of its members
-- beside it. One of them may be new, after a loss (L36). If the set is new, nothing else there is
-- of a member: it may be from before the clock was set back, and last for longer (L65).
local function together(ttl, set, ...)
  local left = redis.call('pttl', set)
  if left < tonumber(ttl) then
    redis.call('pexpire', set, ttl)
  end
  for _, key in ipairs({...}) do
    if left < 0 or redis.call('pttl', key) < tonumber(ttl) then
      redis.call('pexpire', key, ttl)
    end
  end
end

-- register queues a waiter for stay ms, or refreshes its entry. It returns an
-- error for a user who may not.
local function register(queue, entries, waiter, ticket, stay, how, value, moment)
  local queued = redis.pcall('zadd', queue, ticket, waiter)
  if type(queued) == 'table' and queued.err then
    return queued
  end
  redis.call('hset', entries, waiter, whole(moment + stay) .. ' ' .. how .. ' ' .. value)
  together(stay, queue, entries)
end

-- overtaken reports whether a later ask of the waiter has arrived before.
local function overtaken(entries, waiter, n)
  local entry = redis.pcall('hget', entries, waiter)
  local known = type(entry) == 'string' and string.match(entry, '^%d+ %S+ (.*)$')
  return known and askOf(known) > n
end

-- before reports whether a waiter of that ticket goes before another one.
local function before(ticket, waiter, otherTicket, other)
  local a, b = tonumber(ticket), tonumber(otherTicket)
  return a < b or a == b and waiter < other
end
