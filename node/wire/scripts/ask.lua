-- needs: number lengthen queue register
-- later give left want from counter first tell give refused
-- ask: register for a lock, or refresh the registration, give up the grant of an earlier ask,
-- and take the lock if it is our turn.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value, WAITER:N, where N rises from ask to ask   ARGV[2] ticket
-- ARGV[3] for how many ms we stay registered, and the lock is ours if it is granted
-- ARGV[4] the least fencing counter, or '-' without fencing
-- ARGV[5] 'hold' to grant nothing: this master is not trusted
-- OK or the fencing counter if the lock is ours, else {for how many ms it is held, queues of its
-- holder, and the counter with fencing}
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local value, ticket, stay = ARGV[1], ARGV[2], ARGV[3]
local how, hold = ARGV[4], ARGV[5] == 'hold'
local waiter, n = waiterOf(value), askOf(value)
local holder, counter = redis.call('get', lock), nil
local isOurs = holder and waiterOf(holder) == waiter

-- An ask that a later one has overtaken changes nothing. A granted ask that is sent again does not
-- queue again: its lease may have ended when the lock is next handed on (L75).
if not overtaken(entries, waiter, n) and not (isOurs and askOf(holder) >= n) then
  local moment = now()
  if isOurs then
    -- A transfer may have handed the lock to this waiter, which does not know it yet. Until the place
    -- of the transfer expires, the waiter precedes the first one (L73). It keeps the place no longer, or
    -- a split vote would stay split, even if the clock was set back.
    local place = redis.pcall('zscore', queue, waiter)
    local rest = (tonumber(place) or 0) - moment
    if rest > 0 and rest <= tonumber(stay) then
      ticket = place
    end
    redis.call('del', lock)
    holder = false
  end
  local refused = register(queue, entries, waiter, ticket, stay, how, value, moment)
  if refused then
    return refused
  end
  if not holder and not hold then
    local give = later()
    local given, token = give(lock, queue, entries, marker, waiter, moment)
    if given then
      holder, counter = value, token
    end
  end
end
counter = how ~= '-' and (counter or tonumber(redis.call('get', counterOf(queue, marker)) or 0)) or nil
if holder == value and not hold then
  return counter or redis.status_reply('OK')
end
local kind, rest = kindOf(holder), redis.call('pttl', lock)
if kind == 'C' or rest == -2 then
  local _, left, want = later()
  want(lock, marker, holder, kind)
  rest = left(lock, queue, entries)
end
return {rest, queues(kind), counter}
