local lock, channel, timeout, prefix, message, holder = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('publish', channel, message)
  return 1
end
if redis.call('hexists', lock, holder) == 0 then
  return nil
end
local left = redis.call('hincrby', lock, holder, -1)
if left == 0 then
  redis.call('hdel', lock, holder)
end
redis.call('del', timeout .. ':' .. (left + 1))
if redis.call('hlen', lock) > 1 then
  local longest = -3
  for _, other in ipairs(redis.call('hkeys', lock)) do
    local holds = tonumber(redis.call('hget', lock, other))
    for i = holds or 0, 1, -1 do
      longest = math.max(longest, redis.call('pttl', prefix .. ':' .. other .. ':rwlock_timeout:' .. i))
    end
  end
  if longest > 0 then
    redis.call('pexpire', lock, longest)
    return 0
  end
  if mode == 'write' then
    return 0
  end
end
redis.call('del', lock)
redis.call('publish', channel, message)
return 1
