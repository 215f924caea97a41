-- rw_release_short: what rw_release does where nobody waits: for the writer, if
-- there are no readers, and for a reader, if none has come to its end.
local writer = redis.pcall('get', KEYS[1])
if writer == ARGV[1] then
  if redis.pcall('exists', KEYS[2], KEYS[3], KEYS[5], KEYS[7]) == 0 then
    return redis.call('del', KEYS[1])
  end
elseif not writer and redis.pcall('exists', KEYS[2], KEYS[3], KEYS[7]) == 0 then
  local waiter, t = string.match(ARGV[1], '^([^ ]*):%d+'), redis.call('time')
  local moment = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
  if waiter and not redis.call('zrangebyscore', KEYS[5], '-inf', moment)[1] then
    local reads = redis.call('hdel', KEYS[6], waiter)
    if reads == 1 then
      redis.call('zrem', KEYS[5], waiter)
    end
    return reads
  end
end
-- needs: counter lengthen queue rw
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
