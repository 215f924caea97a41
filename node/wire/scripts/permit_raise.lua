-- needs: number counter lengthen queue first tell head permits
-- permit_raise: raise the counter to that of the token, if exactly these slots are ours.
-- KEYS as in permits   ARGV[1] value   ARGV[2] the slots   ARGV[3] the counter
-- 1 the counter is not below that, -1 the slots are not ours
about(KEYS)
sweep(now())
local mine, value = what(waiterOf(ARGV[1]))
if value ~= ARGV[1] or mine ~= ARGV[2] then
  return -1
end
raise(counterKey(), ARGV[3])
return 1
