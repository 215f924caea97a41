-- probe: take the lock, or say how long it is still held and stand in line.
-- KEYS[1] key     KEYS[2] the line of those who wait, if we want to stand in it
-- ARGV[1] value   ARGV[2] ttl in ms
-- ARGV[3] the channel to be woken by   ARGV[4] how long the line stands, in ms
-- OK when taken, else the remaining TTL in ms (-1: held for ever)

-- Who was woken is on the way to all masters. The lock is free here until then,
-- and who took it now would only split the vote: it counts as held for 25 ms,
-- but for no more than two who ask, because who was woken may have died.
local function isTheirs()
  local first = redis.pcall('zrange', KEYS[2], 0, 0, 'withscores')
  local turn, score = first[1], tonumber(first[2]) or 0
  if score >= 0 or turn == '!' .. ARGV[3] or redis.call('exists', KEYS[1]) == 1 then
    return false
  end
  if score == -1 then
    redis.pcall('zrem', KEYS[2], turn)
  else
    redis.pcall('zadd', KEYS[2], score + 1, turn)
  end
  return true
end

-- pcall: who has no right to the line can still wait by the clock.
local function standInLine()
  local last = redis.pcall('zrange', KEYS[2], -1, -1, 'withscores')
  redis.pcall('zadd', KEYS[2], 'NX', math.max(0, tonumber(last[2]) or 0) + 1, ARGV[3])
  redis.pcall('pexpire', KEYS[2], ARGV[4])
end

if KEYS[2] and isTheirs() then
  standInLine()
  return 25
end
local ok = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if ok then
  if KEYS[2] then
    redis.pcall('zrem', KEYS[2], ARGV[3])
  end
  return ok
end
if KEYS[2] then
  standInLine()
end
return redis.call('pttl', KEYS[1])
