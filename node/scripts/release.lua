-- release: delete the lock if it is ours, and wake those who wait for it.
-- KEYS[1] key   ARGV[1] value   ARGV[2] channel, or '' to wake nobody
-- 1 deleted, 0 absent, -1 somebody else's, which stays
local holder = redis.call('get', KEYS[1])
if not holder then
  return 0
end
if holder ~= ARGV[1] then
  return -1
end
redis.call('del', KEYS[1])
if ARGV[2] ~= '' then
  -- pcall: a user who may not publish can still release; waiters have a timer.
  redis.pcall('publish', ARGV[2], '')
end
return 1
