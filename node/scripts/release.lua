-- release: delete the lock if it is ours, and wake the first in line.
-- KEYS[1] key   KEYS[2] the line of those who wait, or none to wake nobody
-- ARGV[1] value
-- 1 deleted, 0 absent, -1 somebody else's, which stays
local holder = redis.call('get', KEYS[1])
if not holder then
  return 0
end
if holder ~= ARGV[1] then
  return -1
end
redis.call('del', KEYS[1])
if KEYS[2] then
  wakeFirst(KEYS[2])
end
return 1
