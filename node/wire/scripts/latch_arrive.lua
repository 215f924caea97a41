-- needs: latch
-- latch_arrive: add an arrival.
-- ARGV[1] the arrival   ARGV[2] its lifetime in ms   ARGV[3] the channel of the waiters
-- ARGV[4] the greatest number of arrivals
-- 1 added, 0 added to an incomplete set: this master must be sent the earlier arrivals; the
-- error ARRIVALS n if there are too many
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
