-- read: take the lock for reading, or wait for that, in one.
-- KEYS as in rw, ARGV and answer as in write
local value, ttl, ticket, hold = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == 'hold'
local waiter, n = waiterOf(value), askOf(value)
local moment = now()
sweep(moment)
local mine = redis.call('hget', reading, waiter)
if overtaken(entries, waiter, n) or mine and askOf(mine) > n then
  return standing(moment)
end
if mine and mine ~= value then
  stopReading(waiter)
end
if ticket ~= '-' then
  local refused = register(queue, entries, waiter, ticket, ARGV[2], 'r', value, moment)
  if refused then
    return refused
  end
end
local writer, at = firstWriter(moment)
local waits = writer and (ticket == '-' or before(at, writer, ticket, waiter))
if hold or waits and mine ~= value or redis.call('exists', lock) == 1 then
  if waits and not hold then
    serve(moment)
  end
  return standing(moment)
end
read(waiter, value, ttl, moment)
unqueue(waiter)
return redis.status_reply('OK')
