-- needs: counter lengthen queue permits
-- permit_resize: change how many permits there are.
-- KEYS as in permits   ARGV[1] how many there are to be   ARGV[2] the order of this
-- Resize among all
-- 1 it is so, an error PERMITS n where a later one has said n
about(KEYS)
local k, moment = tonumber(ARGV[1]), now()
if not resize(k, tonumber(ARGV[2])) then
  return redis.error_reply('PERMITS ' .. whole(size()))
end
sweep(moment)
callAll(moment) -- also who knows another number, or the others wait behind it
return 1
