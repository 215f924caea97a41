-- proclaim: the leader says something new.
-- KEYS[1] lock   KEYS[2] what the leader says, a hash
-- ARGV[1] the leader's value   ARGV[2] the number of what it says   ARGV[3] the text
-- ARGV[4] how long it is kept, in ms   ARGV[5] the channel of those who observe
-- 1 said, 0 or -1 the lock is not the leader's, or the number of what it said before, as
-- a string, if that is higher: then nothing is said (L50)
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then
  return holder and -1 or 0
end
-- What it said later may have arrived before.
local said = redis.call('hmget', KEYS[2], 'leader', 'number')
if said[1] == ARGV[1] and tonumber(said[2]) > tonumber(ARGV[2]) then
  return said[2]
end
redis.call('hset', KEYS[2], 'leader', ARGV[1], 'number', ARGV[2], 'text', ARGV[3])
redis.call('pexpire', KEYS[2], ARGV[4])
redis.pcall('publish', ARGV[5], ARGV[2])
return 1
