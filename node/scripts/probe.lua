-- probe: take the lock, or say how long it is still held and stand in line.
-- KEYS[1] key     KEYS[2] the line of those who wait, if we want to stand in it
-- ARGV[1] value   ARGV[2] ttl in ms
-- ARGV[3] the channel to be woken by   ARGV[4] how long the line stands, in ms
-- OK when taken, else the remaining TTL in ms (-1: held for ever)
local ok = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if KEYS[2] then
  -- pcall: who has no right to the line can still wait by the clock.
  if ok then
    redis.pcall('zrem', KEYS[2], ARGV[3])
  else
    local last = redis.pcall('zrange', KEYS[2], -1, -1, 'withscores')
    redis.pcall('zadd', KEYS[2], 'NX', (tonumber(last[2]) or 0) + 1, ARGV[3])
    redis.pcall('pexpire', KEYS[2], ARGV[4])
  end
end
return ok or redis.call('pttl', KEYS[1])
