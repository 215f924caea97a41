local lock, token, ttl, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if redis.call('exists', lock) == 0 then
  redis.call('incr', token)
  redis.call('hset', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return {-1, redis.call('get', token)}
end
if redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return {-1, redis.call('get', token)}
end
return {redis.call('pttl', lock), -1}
