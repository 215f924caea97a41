-- needs: number counter queue multi
-- multi_repair: put absent locks back, unless another client holds one.
-- KEYS as in multi   ARGV[1] value   ARGV[2] ttl in ms   ARGV[3] token, or '-'
-- OK, or nil if another client holds one
local held = holders()
for i = 1, count_ do
  if held[i] and held[i] ~= ARGV[1] then
    return false
  end
end
for i = 1, count_ do
  redis.call('set', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2])
end
if ARGV[3] ~= '-' then
  raiseAll(ARGV[3])
end
return redis.status_reply('OK')
