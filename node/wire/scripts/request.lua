-- request: ask holders to release their lock. It changes nothing that a lock depends on.
-- KEYS... where each holder looks, named after its value: no other holder ever does
-- ARGV[1] the time by the masters' clocks, in us   ARGV[2] who asks, and why
-- ARGV[3] for how long it is kept, in ms   ARGV[4...] the channel of each holder
-- 1, or -1 if a holder has a later request, which stays
local answer = 1
for i, key in ipairs(KEYS) do
  local stored = redis.pcall('get', key)
  local said = tonumber(type(stored) == 'string' and string.match(stored, '^%d+') or nil)
  if said and said > tonumber(ARGV[1]) then
    answer = -1
  else
    redis.call('set', key, ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
    redis.pcall('publish', ARGV[3 + i], 'request') -- a user who may not: holders look when they renew
  end
end
return answer
