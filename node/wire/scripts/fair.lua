-- fair_short: fair if all keys are absent.
if ARGV[4] == '-' and redis.pcall('exists', KEYS[1], KEYS[2], KEYS[3]) == 0 then
  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3])
end
-- needs: number counter lengthen queue first tell give head register refused
-- fair: take the lock if there are no waiters, and otherwise queue behind them. It is the
-- first ask of a fair waiter; the later ones are ask.lua.
-- KEYS[1] lock   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- ARGV[1] value   ARGV[2] the least ticket, or '-' not to queue
-- ARGV[3] ttl in ms, and for how long we stay registered   ARGV[4] the least fencing
-- counter, or '-' without fencing
-- OK or the fencing counter if the lock is ours, else {for how many ms it is held, 0, the
-- counter, our ticket}
local lock, queue, entries, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local value, how = ARGV[1], ARGV[4]
local waiter = waiterOf(value)
local moment = now()

local function ours(counter)
  if how == '-' then
    return redis.status_reply('OK')
  end
  return counter or tonumber(redis.call('get', counterOf(queue, marker)) or 0)
end

local function refuse(ticket)
  local counter = how ~= '-' and tonumber(redis.call('get', counterOf(queue, marker)) or 0) or 0
  return {left(lock, queue, entries), 0, counter, ticket}
end

if overtaken(entries, waiter, askOf(value)) then
  return refuse(0)
end
local holder = redis.call('get', lock)
if holder == value then
  return ours() -- this ask, sent again
end
if holder and waiterOf(holder) == waiter then
  if askOf(holder) > askOf(value) then
    return refuse(0)
  end
  redis.call('del', lock) -- the grant of an earlier ask
  holder = false
end
if not holder and not head(queue, entries, marker, moment, waiter) then
  redis.call('set', lock, value, 'PX', ARGV[3])
  return ours(how ~= '-' and count(counterOf(queue, marker), how))
end
if ARGV[2] == '-' then
  return refuse(0)
end
local ticket = redis.call('zscore', queue, waiter)
if not ticket then
  local last = redis.call('zrange', queue, -1, -1, 'WITHSCORES')[2]
  ticket = whole(math.max(tonumber(ARGV[2]), (tonumber(last) or 0) + 1))
end
local refused = register(queue, entries, waiter, ticket, ARGV[3], how, value, moment)
if refused then
  return refused
end
-- The waiters before us may not have been notified of their turn.
if not holder then
  local given, counter = give(lock, queue, entries, marker, waiter, moment)
  if given then
    return ours(counter)
  end
end
return refuse(tonumber(ticket))
