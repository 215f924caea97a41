-- latch_arrive: note that somebody has arrived.
-- KEYS[1] who has arrived, a set; '.' in it says that it is whole
-- KEYS[2] marker   ARGV[1] who   ARGV[2] how long the set is kept, in ms
-- ARGV[3] the channel of those who wait
-- 1 noted, 0 noted, but this master has to learn first who arrived before
local new = redis.call('sadd', KEYS[1], ARGV[1])
redis.call('pexpire', KEYS[1], ARGV[2])
if new == 1 then
  redis.pcall('publish', ARGV[3], (redis.pcall('get', KEYS[2]) or '') .. '\n' .. ARGV[1])
end
return redis.call('sismember', KEYS[1], '.')
