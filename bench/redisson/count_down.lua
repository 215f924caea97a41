-- A latch is a number that is counted down.
local count, channel, message = KEYS[1], KEYS[2], ARGV[1]
local left = redis.call('decr', count)
if left <= 0 then
  redis.call('del', count)
end
if left == 0 then
  redis.call('publish', channel, message)
end
return left
