-- read_short: read if all keys are absent.
if ARGV[3] == '-' and ARGV[4] ~= 'hold'
  and redis.pcall('exists', KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6], KEYS[7]) == 0 then
  local waiter, t = string.match(ARGV[1], '^([^ ]*):%d+'), redis.call('time')
  local till = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2])
  redis.call('zadd', KEYS[5], till, waiter)
  redis.call('hset', KEYS[6], waiter, ARGV[1])
  redis.call('pexpire', KEYS[5], ARGV[2])
  redis.call('pexpire', KEYS[6], ARGV[2])
  return redis.status_reply('OK')
end
-- needs: number lengthen queue first tell head register rw
-- read: take the lock for reading, or wait for it.
-- KEYS as in rw, ARGV and reply as in write
about(KEYS)
local value, ttl, ticket, hold = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == 'hold'
local waiter, n = waiterOf(value), askOf(value)
local moment = now()
sweep(moment)
local mine = redis.call('hget', reading, waiter)
local quiet = ticket == '-' and redis.pcall('exists', lock, queue, entries, intent) == 0 -- no writer, no waiters
if not quiet and overtaken(entries, waiter, n) or mine and askOf(mine) > n then
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
local writer, at = nil, nil
if not quiet then
  writer, at = firstWriter(moment)
end
local waits = writer and (ticket == '-' or before(at, writer, ticket, waiter))
if hold or waits and mine ~= value or not quiet and redis.call('exists', lock) == 1 then
  if waits and not hold then
    serve(moment)
  end
  return standing(moment)
end
read(waiter, value, ttl, moment)
if not quiet then
  unqueue(waiter)
end
return redis.status_reply('OK')
