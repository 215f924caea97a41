-- needs: latch
-- latch_write: learn who has arrived at a majority. From now on the set is whole.
-- ARGV[1] how long it is kept, in ms   ARGV[2] channel   ARGV[3] the memory that this
-- master must still have, empty: any   ARGV[4]... who
-- 1, or FORGOT: what was read before this master lost its memory is not all there is
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
