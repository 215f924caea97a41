-- needs: lengthen ours
-- extend_cached: have a cached lock end later, if it is ours, and tell whether others wait.
-- KEYS[1] key   KEYS[2] queue   ARGV[1] value   ARGV[2] ttl in ms
-- what ours answers, or WANTED if it is ours and others wait
local answer = ours(KEYS[1], ARGV[1])
if answer == 1 then
  lengthen(KEYS[1], ARGV[2])
  if redis.pcall('exists', KEYS[2]) == 1 then
    answer = redis.status_reply('WANTED')
  end
end
return answer
