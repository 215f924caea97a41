-- latch_write: learn who has arrived at a majority. From now on the set is whole.
-- ARGV[1] how long it is kept, in ms   ARGV[2] channel   ARGV[3] the memory that this
-- master must still have, empty: any   ARGV[4]... who
-- 1, or FORGOT: what was read before this master lost its memory is not all there is
if ARGV[3] ~= '' and memory() ~= ARGV[3] then
  return redis.error_reply('FORGOT this master has lost its memory since')
end
local new = whole() and 0 or 1
for i = 4, #ARGV, 1000 do -- Lua passes on some thousands at most
  new = new + redis.call('sadd', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
redis.call('set', KEYS[3], memory())
keep(ARGV[1])
if new > 0 then tell(ARGV[2], '') end
return 1
