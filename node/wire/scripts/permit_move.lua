-- needs: number counter lengthen queue first tell head register permits
-- permit_move: take exactly these slots.
-- KEYS as in permits
-- ARGV[1] value   ARGV[2] ttl in ms   ARGV[3] the slots   ARGV[4] number of permits
-- ARGV[5] the order of the Resize that set it   ARGV[6] as ARGV[7] of permit
-- ARGV[7] 'held' if a lease has the slots, and this master lost them
-- {the slots, the counter or 0}, or nil if another client has one, or if a later Resize
-- left fewer permits: then we have none
about(KEYS)
local value, waiter, moment = ARGV[1], waiterOf(ARGV[1]), now()
sweep(moment)
local mine, old = what(waiter)
if overtaken(entries, waiter, askOf(value)) or old and askOf(old) > askOf(value) then
  return false
end
local give = mine == ARGV[3] and take or grant
if mine ~= ARGV[3] then
  drop(waiter)
end
local k = tonumber(ARGV[4])
local possible = not taken(ARGV[3], waiter)
-- A majority has that number of permits, since it granted us some. A number that no Resize set
-- is replaced by it.
local order = tonumber(ARGV[5])
if select(2, size()) == 0 then
  setSize(k, order)
elseif not resize(k, order) and size() < k and ARGV[7] ~= 'held' then
  possible = false -- a Resize to fewer counted the holders before that
end
local counter = 0
if possible then
  give(waiter, value, ARGV[3], ARGV[2], moment)
  leave(queue, entries, waiter)
  counter = counted(ARGV[6])
else
  drop(waiter)
end
serve(k, moment)
return possible and {ARGV[3], counter}
