-- write_short: write if all keys are absent.
if ARGV[3] == '-' and ARGV[4] ~= 'hold'
  and redis.pcall('exists', KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[7]) == 0 then
  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
-- needs: number lengthen queue first tell head register rw
-- write: take the lock for writing, or wait for it.
-- KEYS as in rw
-- ARGV[1] value   ARGV[2] ttl in ms, and for how long we stay registered
-- ARGV[3] ticket, or '-' not to wait   ARGV[last] 'hold': see ask
-- OK, or the reply of standing
about(KEYS)
local value, ttl, ticket, hold = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == 'hold'
local waiter, n = waiterOf(value), askOf(value)
local moment = now()
sweep(moment)
local holder = redis.call('get', lock)
local isOurs = holder and waiterOf(holder) == waiter
if overtaken(entries, waiter, n) or isOurs and askOf(holder) > n then
  return standing(moment)
end
if isOurs and holder ~= value then
  redis.call('del', lock)
  holder = false
end
if holder == value then
  return hold and standing(moment) or redis.status_reply('OK')
end
local behind = false
if ticket ~= '-' then
  local refused = register(queue, entries, waiter, ticket, ttl, 'w', value, moment)
  if refused then
    return refused
  end
  redis.call('zadd', intent, ticket, waiter)
  lengthen(intent, ttl)
  behind = first(queue, entries, moment) ~= waiter
end
if holder or behind or hold or redis.call('zcard', readers) > 0 then
  if behind and not hold then
    serve(moment, waiter)
  end
  return standing(moment)
end
redis.call('set', lock, value, 'PX', ttl)
unqueue(waiter)
return redis.status_reply('OK')
