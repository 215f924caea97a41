-- needs: lengthen kept ours
-- keep: make the lock stay for some time, if it is ours, even if it is released before: see
-- release.lua. Only the clock of this master measures the time.
-- KEYS[1] lock   KEYS[2] the value that the lock is kept for   ARGV[1] value
-- ARGV[2] the time in ms
-- as ours
local answer = ours(KEYS[1], ARGV[1])
if answer == 1 then
  redis.call('set', KEYS[2], ARGV[1], 'PX', ARGV[2])
  lengthen(KEYS[1], ARGV[2])
end
return answer
