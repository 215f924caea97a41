-- leader: return the leader and its proclamation.
-- KEYS[1] lock   KEYS[2] the proclamation   KEYS[3] counter
-- {value, remaining ms, counter, the number of the proclamation or '', its text}
local value = redis.call('get', KEYS[1])
local said = redis.call('hmget', KEYS[2], 'leader', 'number', 'text')
local answer = {value, redis.call('pttl', KEYS[1]), tonumber(redis.call('get', KEYS[3]) or 0), '', ''}
if value and said[1] == value then
  answer[4], answer[5] = said[2], said[3]
end
return answer
