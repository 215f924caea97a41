-- latch_read: who has arrived, and '.' if these are all
local all = redis.call('smembers', KEYS[1])
if whole() then all[#all + 1] = '.' end
return all
