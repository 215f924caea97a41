-- permit_release: give back the slots, leave the queue, and tell who is next.
-- KEYS as in permits   ARGV[1] value   ARGV[2] 'hold': see release
-- 1 given back, 0 we had none
about(KEYS)
local waiter, moment = waiterOf(ARGV[1]), now()
sweep(moment)
local had = what(waiter)
drop(waiter)
leave(queue, entries, waiter)
local k = size()
if k and ARGV[2] ~= 'hold' then
  pcall(serve, k, moment) -- what is given back is given back
end
return had and 1 or 0
