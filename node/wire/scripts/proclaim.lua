-- proclaim: store the leader's proclamation.
-- KEYS[1] lock   KEYS[2] the proclamation, a hash
-- ARGV[1] the leader's value   ARGV[2] the number of the proclamation   ARGV[3] its text
-- ARGV[4] its lifetime in ms   ARGV[5] the channel of the observers
-- 1 stored, 0 or -1 the lock is not the leader's, or the number of the stored proclamation,
-- as a string, if that is higher: then nothing is stored (L50)
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then
  return holder and -1 or 0
end
-- A later proclamation may have arrived before.
local said = redis.call('hmget', KEYS[2], 'leader', 'number')
if said[1] == ARGV[1] and tonumber(said[2]) > tonumber(ARGV[2]) then
  return said[2]
end
redis.call('hset', KEYS[2], 'leader', ARGV[1], 'number', ARGV[2], 'text', ARGV[3])
redis.call('pexpire', KEYS[2], ARGV[4])
redis.pcall('publish', ARGV[5], ARGV[2])
return 1
