-- latch_arrive: note that somebody has arrived.
-- ARGV[1] who   ARGV[2] how long it is kept, in ms   ARGV[3] the channel of those who wait
-- 1 noted, 0 noted, but this master has to learn first who arrived before
local new = redis.call('sadd', KEYS[1], ARGV[1])
keep(ARGV[2])
if new == 1 then tell(ARGV[3], ARGV[1]) end
return whole() and 1 or 0
