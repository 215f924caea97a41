-- needs: latch
-- latch_read: who has arrived, and '.' if these are all; an error ARRIVALS n where there
-- are too many to tell
local n = size()
if n > most then
  return redis.error_reply('ARRIVALS ' .. n)
end
local all = redis.call('smembers', KEYS[1])
if whole() then all[#all + 1] = '.' end
return all
