local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local message, ttl, holder, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
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
if redis.call('hexists', lock, holder) == 0 then
  return nil
end
if redis.call('hincrby', lock, holder, -1) > 0 then
  redis.call('pexpire', lock, ttl)
  return 0
end
redis.call('del', lock)
local next = redis.call('lindex', queue, 0)
if next then
  redis.call('publish', channel .. ':' .. next, message)
end
return 1
