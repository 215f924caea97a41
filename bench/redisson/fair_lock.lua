-- The waiters for a fair lock are in a list. A sorted set has the end of each waiter's place, by the clients' clocks.
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local ttl, holder, wait, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
while true do
  local head = redis.call('lindex', queue, 0)
  if not head then
    break
  end
  local till = redis.call('zscore', timeouts, head)
  if till and tonumber(till) > tonumber(now) then
    break
  end
  redis.call('zrem', timeouts, head)
  redis.call('lpop', queue)
end
local isFree = redis.call('exists', lock) == 0
if isFree and (redis.call('exists', queue) == 0 or redis.call('lindex', queue, 0) == holder) then
  redis.call('lpop', queue)
  redis.call('zrem', timeouts, holder)
  for _, other in ipairs(redis.call('zrange', timeouts, 0, -1)) do
    redis.call('zincrby', timeouts, -tonumber(wait), other)
  end
  redis.call('hset', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return nil
end
if redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return nil
end
local last, rest = redis.call('lindex', queue, -1), redis.call('pttl', lock)
if last and last ~= holder then
  local till = redis.call('zscore', timeouts, last)
  rest = till and tonumber(till) - tonumber(now) or rest
end
if redis.call('zadd', timeouts, 'NX', rest + tonumber(wait) + tonumber(now), holder) == 1 then
  redis.call('rpush', queue, holder)
end
return rest
