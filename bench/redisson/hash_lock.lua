-- A lock is a hash: how often each holder has it. There is one holder.
local lock, ttl, holder = KEYS[1], ARGV[1], ARGV[2]
if redis.call('exists', lock) == 0 or redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return nil
end
return redis.call('pttl', lock)
