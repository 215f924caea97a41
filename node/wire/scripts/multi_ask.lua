-- multi_ask_short: multi_ask if all keys are absent.
if ARGV[3] == '-' and ARGV[4] == '-' and ARGV[6] ~= 'hold'
  and redis.pcall('exists', unpack(KEYS, 1, #KEYS - 1)) == 0 then
  for i = 1, (#KEYS - 1) / 3 do
    redis.call('set', KEYS[i], ARGV[1], 'PX', ARGV[2])
  end
  return redis.status_reply('OK')
end
-- needs: number counter lengthen queue first tell give head register refused multi
-- multi_ask: take all locks, or wait.
-- KEYS as in multi
-- ARGV[1] value   ARGV[2] ttl in ms, and for how long we stay registered
-- ARGV[3] ticket, or '-' not to wait   ARGV[4] the least fencing counter, or '-'
-- ARGV[5] which queues to wait in: 0: of the first lock that we lack; -1: also of every
-- lock, if we precede the other waiters of all, so that no other client gets one; from 1:
-- of that lock, and take none   ARGV[6] 'hold': see ask
-- OK or the fencing counter, else {for how many ms the lock that we lack is held, queues of its
-- holder, the highest counter, the number of that lock, and its holder: a waiter, a value of
-- another library, or ''}
local value, ttl, ticket, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local place, hold = tonumber(ARGV[5]), ARGV[6] == 'hold'
local waiter, n = waiterOf(value), askOf(value)
local moment = now()

local function highest()
  local c = 0
  for i = 1, how == '-' and 0 or count_ do
    c = math.max(c, tonumber(redis.call('get', counterOf(queueOf(i), marker)) or 0))
  end
  return c
end

local function refuse(i, holder)
  return {left(KEYS[i], queueOf(i), entriesOf(i)), queues(kindOf(holder)), highest(), i, holder and waiterOf(holder) or ''}
end

local function ours()
  return how == '-' and redis.status_reply('OK') or highest()
end

local held = holders()
local all = true
for i = 1, count_ do
  if overtaken(entriesOf(i), waiter, n) or isOurs(held[i], waiter) and askOf(held[i]) > n then
    return refuse(i, held[i])
  end
  all = all and held[i] == value
end
if all then
  return hold and refuse(1, held[1]) or ours() -- this ask, sent again
end
local freed = {}
for i = 1, count_ do
  if isOurs(held[i], waiter) then
    redis.call('del', KEYS[i])
    held[i], freed[i] = false, true
  end
end

-- behind reports whether another waiter of a lock precedes us.
local function behind(i)
  local other = ticket ~= '-' and head(queueOf(i), entriesOf(i), marker, moment, waiter)
  return other and other ~= waiter and before(redis.call('zscore', queueOf(i), other), other, ticket, waiter)
end

-- Prefer to wait for a lock that is held, rather than for one that others wait for.
local taken, lowest = nil, true
for i = 1, count_ do
  taken = taken or held[i] and i
end
local lacking = taken
for i = 1, (not taken or place == -1) and count_ or 0 do
  if behind(i) then
    lacking, lowest = lacking or i, false
    if place ~= -1 then
      break
    end
  end
end
if place > 0 then
  lacking = place
elseif not lacking and not hold then
  local token = how ~= '-' and above(highest(), how, 1)
  for i = 1, count_ do
    redis.call('set', KEYS[i], value, 'PX', ttl)
    leave(queueOf(i), entriesOf(i), waiter)
  end
  if token then
    raiseAll(whole(token))
  end
  return ours()
end
lacking = lacking or 1
local waits = {}
for i = 1, count_ do
  waits[i] = ticket ~= '-' and (i == lacking or place == -1 and lowest)
  if waits[i] then
    local refused = register(queueOf(i), entriesOf(i), waiter, ticket, ttl, 'w', value, moment)
    if refused then
      return refused
    end
  else
    leave(queueOf(i), entriesOf(i), waiter)
  end
end
for i = 1, hold and 0 or count_ do
  if not held[i] and (freed[i] or ticket ~= '-') then
    give(KEYS[i], queueOf(i), entriesOf(i), marker, waits[i] and waiter, moment)
  end
end
if ticket ~= '-' then
  want(KEYS[lacking], marker, held[lacking], kindOf(held[lacking]))
end
return refuse(lacking, held[lacking])
