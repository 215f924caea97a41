-- latch_write: learn who has arrived at a majority. From now on the set is whole.
-- KEYS as in latch_arrive   ARGV[1] how long the set is kept, in ms   ARGV[2] channel
-- ARGV[3] the memory that this master must still have, empty: any   ARGV[4]... who
-- 1, or FORGOT: what was read before this master lost its memory is not all there is
local function memory(marker)
  local field = {}
  for word in string.gmatch(marker, '%S+') do field[#field + 1] = word end
  return (field[1] or '') .. ' ' .. (string.gsub(field[2] or '', '^%+', '')) .. ' ' .. (field[7] or '')
end
if ARGV[3] ~= '' and memory(redis.pcall('get', KEYS[2]) or '') ~= ARGV[3] then
  return redis.error_reply('FORGOT this master has lost its memory since')
end
local new = redis.call('sadd', KEYS[1], '.')
for i = 4, #ARGV, 1000 do -- Lua passes on some thousands at most
  new = new + redis.call('sadd', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
redis.call('pexpire', KEYS[1], ARGV[1])
if new > 0 then
  redis.pcall('publish', ARGV[2], (redis.pcall('get', KEYS[2]) or '') .. '\n')
end
return 1
