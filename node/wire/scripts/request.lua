-- request: ask holders to release their lock. It changes nothing that a lock depends on.
-- KEYS... where each holder looks, named after its value: no other holder ever does
-- ARGV[1] the time by the masters' clocks, in us   ARGV[2] who asks, and why
-- ARGV[3] for how long it is kept, in ms   ARGV[4...] the channel of each holder
-- 1, or where holders have another request that is not earlier, which stays, the highest number
-- of those, as a string (L70)
local ours = ARGV[1] .. ' ' .. ARGV[2]
local highest
for i, key in ipairs(KEYS) do
  local stored = redis.pcall('get', key)
  local said = type(stored) == 'string' and stored ~= ours and string.match(stored, '^%d+')
  if said and tonumber(said) >= tonumber(ARGV[1]) then
    highest = highest and tonumber(highest) > tonumber(said) and highest or said
  else
    redis.call('set', key, ours, 'PX', ARGV[3])
    redis.pcall('publish', ARGV[3 + i], 'request') -- a user who may not: holders look when they renew
  end
end
return highest or 1
