-- rw_release: stop reading or writing, leave the queue, and tell who is next.
-- KEYS as in rw   ARGV[1] value   ARGV[2] 'hold': see release
-- 1 we had the lock, 0 nobody else writes, -1 somebody else does
about(KEYS)
local waiter, moment = waiterOf(ARGV[1]), now()
sweep(moment)
local answer = 0
local holder = redis.call('get', lock)
if holder and waiterOf(holder) == waiter then
  redis.call('del', lock)
  answer = 1
elseif redis.call('hexists', reading, waiter) == 1 then
  stopReading(waiter)
  answer = 1
elseif holder then
  answer = -1
end
unqueue(waiter)
if ARGV[2] ~= 'hold' then
  pcall(serve, moment) -- what is given back is given back
end
return answer
