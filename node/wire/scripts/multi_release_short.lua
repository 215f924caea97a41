-- multi_release_short: what multi_release does where all locks are ours, not
-- fenced, and nobody waits.
local locks = (#KEYS - 1) / 3
if ARGV[2] == '-' and redis.pcall('exists', unpack(KEYS, locks + 1, 2 * locks)) == 0 then
  local held, ours = redis.call('mget', unpack(KEYS, 1, locks)), 0
  for i = 1, locks do
    ours = ours + (held[i] == ARGV[1] and 1 or 0)
  end
  if ours == locks then
    redis.call('del', unpack(KEYS, 1, locks))
    return 1
  end
end
