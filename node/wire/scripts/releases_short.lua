-- releases_short: what releases does where every lock is ours, every counter is up,
-- and nobody waits. That is mostly so, and needs nothing of what stands behind it.
-- how many: all of them are deleted
local n = (#KEYS - 1) / 2
if redis.pcall('exists', unpack(KEYS, n + 1, 2 * n)) == 0 then
  local held, ours = redis.call('mget', unpack(KEYS, 1, n)), true
  for i = 1, n do
    ours = ours and held[i] == ARGV[i]
  end
  if ours and ARGV[n + 1] then
    local marker, counters = KEYS[#KEYS], {}
    for i = 1, n do
      counters[i] = string.sub(marker, 1, -7) .. 'token:' .. string.sub(KEYS[n + i], #marker + 1)
    end
    local counts = redis.call('mget', unpack(counters))
    for i = 1, n do
      ours = ours and counts[i] == ARGV[n + i]
    end
  end
  if ours then
    redis.call('del', unpack(KEYS, 1, n))
    return n
  end
end
