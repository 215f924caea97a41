-- needs: lengthen ours
-- extend: have the lock end later, if it is ours.
-- KEYS[1] key   ARGV[1] value   ARGV[2] ttl in ms
-- what ours answers
local answer = ours(KEYS[1], ARGV[1])
if answer == 1 then
  lengthen(KEYS[1], ARGV[2])
end
return answer
