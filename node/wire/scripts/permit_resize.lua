-- needs: number counter lengthen queue first tell head permits
-- permit_resize: set the number of permits.
-- KEYS as in permits   ARGV[1] the number   ARGV[2] the order of this Resize
-- 1 set, the error PERMITS n if a later Resize has set n
about(KEYS)
local k, moment = tonumber(ARGV[1]), now()
if not resize(k, tonumber(ARGV[2])) then
  return redis.error_reply('PERMITS ' .. whole(size()))
end
sweep(moment)
callAll(moment) -- also waiters with another number, or the rest waits behind them
return 1
