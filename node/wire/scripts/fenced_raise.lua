-- needs: counter
-- fenced_raise: move the counter up to the token of the attempt that holds the
-- lock, for which it must not be there already.
-- KEYS[1] lock   KEYS[2] counter   ARGV[1] value   ARGV[2] token
-- 1 raised, 0 it was there already, -1 the lock is not ours
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return -1
end
return raise(KEYS[2], ARGV[2]) and 1 or 0
