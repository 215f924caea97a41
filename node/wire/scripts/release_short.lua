-- release_short: what release does where the lock is ours, its counter is up, and
-- nobody waits. That is mostly so, and needs nothing of what stands behind it.
local token = ARGV[2] ~= 'hold' and ARGV[2]
if redis.pcall('get', KEYS[1]) == ARGV[1] and redis.pcall('exists', KEYS[2]) == 0
  and (not token or token == redis.pcall('get', string.sub(KEYS[4], 1, -7) .. 'token:' .. string.sub(KEYS[2], #KEYS[4] + 1))) then
  return redis.call('del', KEYS[1])
end
