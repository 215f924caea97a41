-- needs: number counter
-- fenced_raise: raise the counter to the token of the attempt that holds the lock. The
-- counter must be below the token.
-- KEYS[1] lock   KEYS[2] counter   ARGV[1] value   ARGV[2] token
-- 1 raised, 0 it was not below, -1 the lock is not ours
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return -1
end
return raise(KEYS[2], ARGV[2]) and 1 or 0
