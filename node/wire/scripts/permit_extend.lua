-- needs: number counter lengthen queue first tell head permits
-- permit_extend: extend, and release slots that are not part of the permit.
-- KEYS as in permits
-- ARGV[1] value   ARGV[2] ttl in ms   ARGV[3] the slots   ARGV[4] number of
-- permits   ARGV[5] the counter of our token, or '-'
-- 1 extended, 0 the slots are free, -1 another client has one of them; other slots of ours are
-- released
about(KEYS)
local value, waiter, moment = ARGV[1], waiterOf(ARGV[1]), now()
sweep(moment)
local mine, mineValue = what(waiter)
if mineValue == value and mine == ARGV[3] then
  take(waiter, value, mine, ARGV[2], moment)
  redis.call('pexpire', limit, week) -- others must agree for as long as it is held
  if ARGV[5] ~= '-' then
    raise(counterKey(), ARGV[5])
  end
  return 1
end
if mine then
  drop(waiter)
  serve(tonumber(ARGV[4]), moment)
end
return taken(ARGV[3]) and -1 or 0
