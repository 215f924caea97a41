-- needs: lengthen kept ours queue
-- extend_cached: extend a cached lock if it is ours, and report whether others wait.
-- KEYS[1] key   KEYS[2] queue   ARGV[1] value   ARGV[2] ttl in ms
-- as ours, or WANTED if it is ours and others wait
local answer = ours(KEYS[1], ARGV[1])
if answer == 1 then
  lengthen(KEYS[1], ARGV[2])
  for _, waiter in ipairs(redis.pcall('zrange', KEYS[2], 0, 1)) do
    if waiter ~= waiterOf(ARGV[1]) then -- a holder stays queued
      answer = redis.status_reply('WANTED')
    end
  end
end
return answer
