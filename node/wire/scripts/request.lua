-- request: ask holders to release their lock. It changes nothing that a lock depends on.
-- KEYS... the request to each holder, a key named after the holder's value
-- ARGV[1] the time by the masters' clocks in us, which is the number of the request
-- ARGV[2] the client that asks, and why   ARGV[3] its lifetime in ms   ARGV[4...] the channel
-- of each holder
-- 1, or the highest number of the requests that stay because theirs is not lower, as a
-- string (L70)
local ours = ARGV[1] .. ' ' .. ARGV[2]
local highest
for i, key in ipairs(KEYS) do
  local stored = redis.pcall('get', key)
  local said = type(stored) == 'string' and stored ~= ours and string.match(stored, '^%d+')
  if said and tonumber(said) >= tonumber(ARGV[1]) then
    highest = highest and tonumber(highest) > tonumber(said) and highest or said
  else
    redis.call('set', key, ours, 'PX', ARGV[3])
    redis.pcall('publish', ARGV[3 + i], 'request') -- without the permission, holders look when they renew
  end
end
return highest or 1
