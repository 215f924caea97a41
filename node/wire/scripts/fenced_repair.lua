-- needs: number counter
-- fenced_repair: put the lock back if it is free, and raise the counter to the token.
-- KEYS[1] lock   KEYS[2] counter   ARGV[1] value   ARGV[2] ttl in ms
-- ARGV[3] token
-- OK, or nil if another client holds it
local set = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if set then
  raise(KEYS[2], ARGV[3])
end
return set
