-- needs: number lengthen queue first tell head rw
-- read_extend: extend a reader, or turn a writer into one.
-- KEYS as in rw   ARGV[1] value   ARGV[2] ttl in ms
-- 1 extended, 0 we do not have the lock, nor does a writer, -1 a writer has it
about(KEYS)
local value, waiter, moment = ARGV[1], waiterOf(ARGV[1]), now()
sweep(moment)
local holder = redis.call('get', lock)
-- It no longer waits to write, even if this master did not grant it the lock (L42).
local waited = redis.pcall('zscore', intent, waiter)
if type(waited) == 'string' then
  unqueue(waiter)
  serve(moment)
end
if holder and holder ~= value then
  return -1
end
if not holder and redis.call('hget', reading, waiter) ~= value then
  return 0
end
local ttl = tonumber(ARGV[2])
if holder then
  ttl = math.max(ttl, redis.call('pttl', lock)) -- its end never becomes earlier: see lengthen
  redis.call('del', lock) -- first: an error here must leave no reader
end
read(waiter, value, ttl, moment)
if holder then
  unqueue(waiter)
  serve(moment)
end
return 1
