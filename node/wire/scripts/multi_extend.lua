-- needs: number counter lengthen queue multi
-- multi_extend: extend all locks.
-- KEYS as in multi   ARGV[1] value   ARGV[2] ttl in ms   ARGV[3] token, or '-'
-- 1 all extended, 0 some are absent, -1 another client holds one
local answer = 1
for i, holder in ipairs(holders()) do
  if holder == ARGV[1] then
    lengthen(KEYS[i], ARGV[2])
  elseif holder then
    answer = -1
  else
    answer = math.min(answer, 0)
  end
end
if answer == 1 and ARGV[3] ~= '-' then
  raiseAll(ARGV[3])
end
return answer
