-- needs: lengthen
-- extend: have the lock end later, if it is ours.
-- KEYS[1] key   ARGV[1] value   ARGV[2] ttl in ms
-- 1 extended, 0 absent, -1 somebody else's
local holder = redis.call('get', KEYS[1])
if not holder then
  return 0
end
if holder ~= ARGV[1] then
  return -1
end
lengthen(KEYS[1], ARGV[2])
return 1
