-- read_short: what read does where nothing is there.
if ARGV[3] == '-' and ARGV[4] ~= 'hold'
  and redis.pcall('exists', KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6], KEYS[7]) == 0 then
  local waiter, t = string.match(ARGV[1], '^([^ ]*):%d+'), redis.call('time')
  local till = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2])
  redis.call('zadd', KEYS[5], till, waiter)
  redis.call('hset', KEYS[6], waiter, ARGV[1])
  redis.call('pexpire', KEYS[5], ARGV[2])
  redis.call('pexpire', KEYS[6], ARGV[2])
  return redis.status_reply('OK')
end
