-- rw_release_short: rw_release without waiters: of the writer if there are no readers, and of
-- a reader if no reader has expired.
local writer = redis.pcall('get', KEYS[1])
if writer == ARGV[1] then
  if redis.pcall('exists', KEYS[2], KEYS[3], KEYS[5], KEYS[7]) == 0 then
    return redis.call('del', KEYS[1])
  end
elseif not writer and redis.pcall('exists', KEYS[2], KEYS[3], KEYS[7]) == 0 then
  local waiter, t = string.match(ARGV[1], '^([^ ]*):%d+'), redis.call('time')
  local moment = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
  if waiter and not redis.call('zrangebyscore', KEYS[5], '-inf', moment)[1] then
    local reads = redis.call('zrem', KEYS[5], waiter)
    redis.call('hdel', KEYS[6], waiter)
    return reads
  end
end
-- needs: number lengthen queue first tell head quit rw
-- rw_release: stop reading or writing, leave the queue, and notify the next waiters.
-- KEYS as in rw   ARGV[1] value   'hold' changes nothing: waiters are only notified to ask
-- 1 we had the lock, 0 no other client writes, -1 another client does
about(KEYS)
local waiter, moment = waiterOf(ARGV[1]), now()
sweep(moment)
local answer = 0
local holder = redis.call('get', lock)
if holder and waiterOf(holder) == waiter then
  redis.call('del', lock)
  answer = 1
elseif redis.call('zscore', readers, waiter) or redis.call('hexists', reading, waiter) == 1 then -- see stopReading
  stopReading(waiter)
  answer = 1
elseif holder then
  answer = -1
end
quit(queue, entries, waiter, answer == 1)
redis.pcall('zrem', intent, waiter)
pcall(serve, moment) -- the release stands, whatever fails here
return answer
