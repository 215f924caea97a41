-- fair_short: what fair does where nothing is there.
if ARGV[4] == '-' and redis.pcall('exists', KEYS[1], KEYS[2], KEYS[3]) == 0 then
  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3])
end
