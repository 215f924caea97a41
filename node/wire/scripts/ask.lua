-- needs: counter lengthen queue register
-- ask: register for a lock, or refresh the registration, give up the grant of an earlier ask,
-- and take the lock if it is our turn.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value, WAITER:N, where N rises from ask to ask   ARGV[2] ticket
-- ARGV[3] for how many ms we stay registered, and the lock is ours if it is granted
-- ARGV[4] the least fencing counter, or '-' without fencing
-- ARGV[5] 'hold' to grant nothing: this master is not trusted
-- OK or the fencing counter if the lock is ours, else {for how many ms it is held, queues of its
-- holder, and the counter with fencing}
local lock, queue, entries = KEYS[1], KEYS[2], KEYS[3]
local value, how, hold = ARGV[1], ARGV[4], ARGV[5] == 'hold'
local waiter, n = waiterOf(value), askOf(value)

local function ours(counter)
  if how == '-' then
    return redis.status_reply('OK')
  end
  return counter or tonumber(redis.call('get', counterOf(queue, KEYS[4])) or 0)
end

local function standing(holder)
  want(lock, KEYS[4], holder)
  local answer = {left(lock, queue, entries), queues(holder)}
  if how ~= '-' then
    answer[3] = tonumber(redis.call('get', counterOf(queue, KEYS[4])) or 0)
  end
  return answer
end

local function answer(holder)
  if holder == value and not hold then
    return ours()
  end
  return standing(holder)
end

-- An ask that a later one has overtaken changes nothing. A granted ask that is sent again does not
-- queue again: its lease may have ended when the lock is next handed on (L75).
local holder = redis.call('get', lock)
local isOurs = holder and waiterOf(holder) == waiter
if overtaken(entries, waiter, n) or isOurs and askOf(holder) >= n then
  return answer(holder)
end
local moment, ticket = now(), ARGV[2]
if isOurs then
  -- A transfer may have handed the lock to this waiter, which does not know it yet. Until the place
  -- of the transfer expires, the waiter precedes the first one (L73). It keeps the place no longer, or
  -- a split vote would stay split, even if the clock was set back.
  local place = redis.pcall('zscore', queue, waiter)
  local rest = (tonumber(place) or 0) - moment
  if rest > 0 and rest <= tonumber(ARGV[3]) then
    ticket = place
  end
  redis.call('del', lock)
  holder = false
end
local refused = register(queue, entries, waiter, ticket, ARGV[3], how, value, moment)
if refused then
  return refused
end
if not holder and not hold then
  local given, counter = give(lock, queue, entries, KEYS[4], waiter, moment)
  if given then
    return ours(counter)
  end
end
return answer(holder)
