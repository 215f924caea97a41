-- write_short: what write does where nothing is there.
if ARGV[3] == '-' and ARGV[4] ~= 'hold'
  and redis.pcall('exists', KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[7]) == 0 then
  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
