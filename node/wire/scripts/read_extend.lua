-- needs: counter lengthen queue rw
-- read_extend: extend for a reader, and what turns a writer into one.
-- KEYS as in rw   ARGV[1] value   ARGV[2] ttl in ms
-- 1 extended, 0 we do not have the lock and no writer has, -1 a writer has
about(KEYS)
local value, waiter, moment = ARGV[1], waiterOf(ARGV[1]), now()
sweep(moment)
local holder = redis.call('get', lock)
-- It does not wait to write any more, also where it was not given the lock (L42).
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
  ttl = math.max(ttl, redis.call('pttl', lock)) -- the end of what it holds never comes earlier: see lengthen
  redis.call('del', lock) -- first: where that is refused, nobody reads by what is left half done
end
read(waiter, value, ttl, moment)
if holder then
  unqueue(waiter)
  serve(moment)
end
return 1
