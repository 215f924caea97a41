-- multi_ask_short: what multi_ask does where nothing is there.
if ARGV[3] == '-' and ARGV[4] == '-' and ARGV[6] ~= 'hold'
  and redis.pcall('exists', unpack(KEYS, 1, #KEYS - 1)) == 0 then
  for i = 1, (#KEYS - 1) / 3 do
    redis.call('set', KEYS[i], ARGV[1], 'PX', ARGV[2])
  end
  return redis.status_reply('OK')
end
