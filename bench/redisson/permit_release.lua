local free, leases, channel, permit, n = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
if redis.call('zrem', leases, permit) == 0 then
  return nil
end
redis.call('publish', channel, redis.call('incrby', free, n))
return 1
