-- needs: latch
-- latch_arrive: note that somebody has arrived.
-- ARGV[1] who   ARGV[2] how long it is kept, in ms   ARGV[3] the channel of those who wait
-- ARGV[4] how many there may be
-- 1 noted, 0 noted, but this master has to learn first who arrived before, an error
-- ARRIVALS n where there are too many
local n = size()
if n >= tonumber(ARGV[4]) and redis.pcall('sismember', KEYS[1], ARGV[1]) ~= 1 then
  return redis.error_reply('ARRIVALS ' .. n)
end
local sum = digest(n)
local new = redis.call('sadd', KEYS[1], ARGV[1])
keep(ARGV[2])
if sum then
  if new == 1 then add(sum, ARGV[1]) end
  store(n + new, sum, ARGV[2])
end
if new == 1 then tell(ARGV[3], ARGV[1]) end
return whole() and 1 or 0
