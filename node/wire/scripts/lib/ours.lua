-- kept is what stands before the value of a lock that stays although it was released: see
-- release.lua. No waiter has such a value, so that nothing of its former holder extends it.
local kept = '!'

-- ours reports whether a lock is that value's: 1 it is, 0 there is none, or it was
-- released and is only kept, -1 it is somebody else's.
local function ours(key, value)
  local holder = redis.call('get', key)
  if holder == value then
    return 1
  end
  return holder and holder ~= kept .. value and -1 or 0
end
