-- permit_resize: change how many permits there are.
-- KEYS as in permits   ARGV[1] how many there were   ARGV[2] how many there are to be
-- 1 changed, or so already; an error PERMITS n where there were n
about(KEYS)
local stored = redis.call('get', limit)
if stored and stored ~= ARGV[1] and stored ~= ARGV[2] then
  return redis.error_reply('PERMITS ' .. stored)
end
redis.call('set', limit, ARGV[2], 'PX', week)
sweep(now())
serve(tonumber(ARGV[2]), now())
return 1
