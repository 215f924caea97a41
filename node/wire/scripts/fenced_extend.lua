-- needs: counter lengthen
-- fenced_extend: extend, which keeps the counter up with the token.
-- KEYS[1] lock   KEYS[2] counter   ARGV[1] value   ARGV[2] ttl in ms
-- ARGV[3] token
-- 1 extended, 0 absent, -1 somebody else's
local holder = redis.call('get', KEYS[1])
if not holder then
  return 0
end
if holder ~= ARGV[1] then
  return -1
end
raise(KEYS[2], ARGV[3])
lengthen(KEYS[1], ARGV[2])
return 1
