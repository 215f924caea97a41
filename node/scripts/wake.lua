-- wake: wake the first in line, for one who was woken and does not need it.
-- KEYS[1] the line of those who wait
-- 1 somebody was woken, 0 nobody was there
while true do
  local first = redis.call('zpopmin', KEYS[1])
  if not first[1] then
    return 0
  end
  if redis.call('publish', first[1], '') ~= 0 then
    return 1
  end
end
