-- needs: lengthen
-- keep: have the lock stay for so long, if it is ours, even if it is released before: see
-- release.lua. The clock of this master alone counts the time.
-- KEYS[1] lock   KEYS[2] the value that it is kept for   ARGV[1] value
-- ARGV[2] for how long, in ms
-- 1 kept, 0 absent, -1 somebody else's
local holder = redis.call('get', KEYS[1])
if not holder then
  return 0
end
if holder ~= ARGV[1] then
  return -1
end
redis.call('set', KEYS[2], ARGV[1], 'PX', ARGV[2])
lengthen(KEYS[1], ARGV[2])
return 1
