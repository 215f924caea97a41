-- multi_ask: take all locks, or wait for those that somebody else holds.
-- KEYS as in multi
-- ARGV[1] value   ARGV[2] ttl in ms, and for how long we stay registered
-- ARGV[3] ticket, or '-' not to wait   ARGV[4] the least fencing counter that we
-- want, or '-'   ARGV[5] 'hold': see ask
-- OK or the fencing counter, else {how long the first lock that we lack is held in
-- ms, 1 if by another library, the highest counter, which lock that is}
local value, ttl, ticket, how, hold = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == 'hold'
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
  local foreign = holder and not string.match(holder, '^[^ /]*/[a-z2-7]*/[0-9a-z]*:%d')
  return {redis.call('pttl', KEYS[i]), foreign and 1 or 0, highest(), i}
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
  return hold and refuse(1, held[1]) or ours() -- this ask, sent once more
end
local freed = {}
for i = 1, count_ do
  if isOurs(held[i], waiter) then
    redis.call('del', KEYS[i])
    held[i], freed[i] = false, true
  end
end

-- goesFirst reports whether somebody who waits for a lock comes before us.
local function goesFirst(i)
  local head = first(queueOf(i), entriesOf(i), moment)
  return head and head ~= waiter and before(redis.call('zscore', queueOf(i), head), head, ticket, waiter)
end

local lacking = nil
for i = 1, count_ do
  if held[i] or ticket ~= '-' and goesFirst(i) then
    lacking = i
    break
  end
end
local taken = not lacking and not hold
if taken then
  for i = 1, count_ do
    redis.call('set', KEYS[i], value, 'PX', ttl)
  end
end
-- We wait for every lock that is held, or those who have a minority each would
-- yield one lock after the other, and take it again meanwhile.
for i = 1, count_ do
  if ticket ~= '-' and not taken and (held[i] or i == (lacking or 1)) then
    local refused = register(queueOf(i), entriesOf(i), waiter, ticket, ttl, 'w', value, moment)
    if refused then
      return refused
    end
  else
    leave(queueOf(i), entriesOf(i), waiter)
  end
end
if taken then
  if how ~= '-' then
    local c = math.max(highest() + 1, tonumber(how))
    raiseAll(whole(c))
  end
  return ours()
end
if not hold then
  for i = 1, count_ do
    if not held[i] and (freed[i] or ticket ~= '-') then
      give(KEYS[i], queueOf(i), entriesOf(i), marker, waiter, moment)
    end
  end
end
return refuse(lacking or 1, held[lacking or 1])
