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
while KEYS[2] do
  -- Who has gone without leaving the line has no subscription: the next one.
  -- pcall: who may not publish can still release; those who wait have timers.
  local first = redis.pcall('zpopmin', KEYS[2])
  if not first[1] or redis.pcall('publish', first[1], '') ~= 0 then
    break
  end
end
return 1
