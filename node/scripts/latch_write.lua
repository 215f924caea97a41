-- latch_write: learn who has arrived at a majority. From now on the set is whole.
-- KEYS and ARGV as in latch_arrive, but ARGV[1] how long, ARGV[2] the channel, and
-- who has arrived from ARGV[3] on
-- 1
local new = redis.call('sadd', KEYS[1], '.')
for i = 3, #ARGV, 1000 do -- Lua passes on some thousands at most
  new = new + redis.call('sadd', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
redis.call('pexpire', KEYS[1], ARGV[1])
if new > 0 then
  redis.pcall('publish', ARGV[2], (redis.pcall('get', KEYS[2]) or '') .. '\n')
end
return 1
