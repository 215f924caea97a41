-- A semaphore whose permits expire is a number, and a sorted set of the held permits by their ends on the clients' clocks.
local free, leases, channel, n, till, permit, now = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local late = redis.call('zrangebyscore', leases, 0, now)
if #late > 0 then
  redis.call('zrem', leases, unpack(late))
  redis.call('publish', channel, redis.call('incrby', free, #late))
end
local value = redis.call('get', free)
if value and tonumber(value) >= tonumber(n) then
  redis.call('decrby', free, n)
  redis.call('zadd', leases, till, permit)
  return nil
end
local first = redis.call('zrange', leases, 0, 0, 'WITHSCORES')[2]
return first and tonumber(first) - tonumber(now) or -1
