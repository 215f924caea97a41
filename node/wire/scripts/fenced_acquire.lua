-- needs: number counter
-- fenced_acquire: take the lock if it is free, and raise its counter.
-- KEYS[1] lock   KEYS[2] counter
-- ARGV[1] value   ARGV[2] ttl in ms   ARGV[3] the least counter
-- the counter if the lock is ours, else {for how many ms it is held, 0, the counter}
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return count(KEYS[2], ARGV[3])
end
return {redis.call('pttl', KEYS[1]), 0, tonumber(redis.call('get', KEYS[2]) or 0)}
