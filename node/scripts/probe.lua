-- probe: take the lock, or say how long it is still held.
-- KEYS[1] key   ARGV[1] value   ARGV[2] ttl in ms
-- OK when taken, else the remaining TTL in ms (-1: held for ever)
local ok = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if ok then
  return ok
end
return redis.call('pttl', KEYS[1])
