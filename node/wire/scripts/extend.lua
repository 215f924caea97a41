-- needs: lengthen kept ours
-- extend: extend the lock if it is ours.
-- KEYS[1] key   ARGV[1] value   ARGV[2] ttl in ms
-- as ours
local answer = ours(KEYS[1], ARGV[1])
if answer == 1 then
  lengthen(KEYS[1], ARGV[2])
end
return answer
