-- needs: latch
-- latch_write: add the arrivals that a majority has. From now on the set is complete.
-- ARGV[1] its lifetime in ms   ARGV[2] channel   ARGV[3] the memory that this master must
-- still have, or '' for any   ARGV[4]... the arrivals
-- 1, or the error FORGOT if this master has lost its memory: the arrivals may not be all
if ARGV[3] ~= '' and memory() ~= ARGV[3] then
  return redis.error_reply('FORGOT this master has lost its memory since')
end
local n = size()
local sum, before = digest(n), n
for i = 4, #ARGV do
  if redis.call('sadd', KEYS[1], ARGV[i]) == 1 then
    n = n + 1
    if sum then add(sum, ARGV[i]) end
  end
end
local new = n > before or not whole()
redis.call('set', KEYS[3], memory())
keep(ARGV[1])
if sum and n > 0 then store(n, sum, ARGV[1]) end
if new then tell(ARGV[2], '') end
return 1
