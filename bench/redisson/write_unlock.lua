local lock, channel, message, ttl, writer = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('publish', channel, message)
  return 1
end
if mode ~= 'write' or redis.call('hexists', lock, writer) == 0 then
  return nil
end
if redis.call('hincrby', lock, writer, -1) > 0 then
  redis.call('pexpire', lock, ttl)
  return 0
end
redis.call('hdel', lock, writer)
if redis.call('hlen', lock) == 1 then
  redis.call('del', lock)
  redis.call('publish', channel, message)
else
  redis.call('hset', lock, 'mode', 'read')
end
return 1
