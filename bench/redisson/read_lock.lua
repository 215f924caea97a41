-- A read-write lock is a hash with its mode and its holders. Each hold of a reader has a key that ends with it.
local lock, timeout, ttl, holder, writer = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('hset', lock, 'mode', 'read')
  redis.call('hset', lock, holder, 1)
  redis.call('set', timeout .. ':1', 1)
  redis.call('pexpire', timeout .. ':1', ttl)
  redis.call('pexpire', lock, ttl)
  return nil
end
if mode == 'read' or redis.call('hexists', lock, writer) == 1 then
  local hold = timeout .. ':' .. redis.call('hincrby', lock, holder, 1)
  redis.call('set', hold, 1)
  redis.call('pexpire', hold, ttl)
  redis.call('pexpire', lock, math.max(redis.call('pttl', lock), tonumber(ttl)))
  return nil
end
return redis.call('pttl', lock)
