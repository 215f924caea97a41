-- releases_short: what releases does where every lock is ours, none is fenced, and
-- nobody waits. That is mostly so, and needs nothing of what stands behind it.
-- 1: all are deleted
local n = #ARGV
if 2 * n == #KEYS - 1 and redis.pcall('exists', unpack(KEYS, n + 1, 2 * n)) == 0 then
  local held, ours = redis.call('mget', unpack(KEYS, 1, n)), true
  for i = 1, n do
    ours = ours and held[i] == ARGV[i]
  end
  if ours then
    redis.call('del', unpack(KEYS, 1, n))
    return 1
  end
end
