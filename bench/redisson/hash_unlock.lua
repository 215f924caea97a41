-- The release of the last hold frees the lock.
local lock, channel, message, ttl, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
if redis.call('hexists', lock, holder) == 0 then
  return nil
end
if redis.call('hincrby', lock, holder, -1) > 0 then
  redis.call('pexpire', lock, ttl)
  return 0
end
redis.call('del', lock)
redis.call('publish', channel, message)
return 1
