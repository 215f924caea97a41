-- needs: number counter queue multi
-- multi_raise: raise the counters to the token of the attempt that holds all locks; see
-- fenced_raise.
-- KEYS as in multi   ARGV[1] value   ARGV[2] token
-- 1 raised, 0 they were not below, -1 the locks are not ours
for _, holder in ipairs(holders()) do
  if holder ~= ARGV[1] then
    return -1
  end
end
return raiseAll(ARGV[2]) and 1 or 0
