-- needs: latch
-- latch_read: return the arrivals, and '.' if the set is complete; the error ARRIVALS n if
-- there are too many to return
local n = size()
if n > most then
  return redis.error_reply('ARRIVALS ' .. n)
end
local all = redis.call('smembers', KEYS[1])
if whole() then all[#all + 1] = '.' end
return all
