-- needs: lengthen ours
-- keep: have the lock stay for so long, if it is ours, even if it is released before: see
-- release.lua. The clock of this master alone counts the time.
-- KEYS[1] lock   KEYS[2] the value that it is kept for   ARGV[1] value
-- ARGV[2] for how long, in ms
-- what ours answers
local answer = ours(KEYS[1], ARGV[1])
if answer == 1 then
  redis.call('set', KEYS[2], ARGV[1], 'PX', ARGV[2])
  lengthen(KEYS[1], ARGV[2])
end
return answer
