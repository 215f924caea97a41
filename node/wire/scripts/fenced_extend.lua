-- needs: number counter lengthen kept ours
-- fenced_extend: extend, and raise the counter to the token.
-- KEYS[1] lock   KEYS[2] counter   ARGV[1] value   ARGV[2] ttl in ms
-- ARGV[3] token
-- as ours
local answer = ours(KEYS[1], ARGV[1])
if answer == 1 then
  raise(KEYS[2], ARGV[3])
  lengthen(KEYS[1], ARGV[2])
end
return answer
