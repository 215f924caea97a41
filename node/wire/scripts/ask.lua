-- needs: counter lengthen queue
-- ask: register for a lock, refresh, give back what an earlier ask was given,
-- and take the lock if it is our turn, all in one.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value, WAITER:N with N rising from ask to ask   ARGV[2] ticket
-- ARGV[3] for how long we stay registered, and the lock is ours if it is given
-- to us, in ms   ARGV[4] the least fencing counter that we want, or '-'
-- ARGV[5] 'hold' to hand on nothing and count for nothing: this master is not to
-- be believed
-- OK or the fencing counter when it is ours, else {how long it is held in ms, what
-- queues answers of its holder, and the counter if one is wanted}
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

-- An ask that was overtaken by a later one is not worth anything any more. One that was granted, and
-- is sent once more, does not queue again: its lease may be over when the lock is next handed on (L75).
local holder = redis.call('get', lock)
local isOurs = holder and waiterOf(holder) == waiter
if overtaken(entries, waiter, n) or isOurs and askOf(holder) >= n then
  return answer(holder)
end
local moment, ticket = now(), ARGV[2]
if isOurs then
  -- The lock may have been handed to it by a transfer, of which it does not know yet. Then it does
  -- not yield to the first, and keeps its place until then (L73): no longer, or a vote that is split
  -- would stay so, also where the clock was set back.
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
