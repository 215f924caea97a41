-- kept is the prefix in the value of a lock that stays although it was released: see
-- release.lua. No waiter has such a value, so that no request of the former holder extends it.
local kept = '!'

-- ours returns 1 if a lock has that value, 0 if it is absent, or was released and is only
-- kept, and -1 if another client has it.
local function ours(key, value)
  local holder = redis.call('get', key)
  if holder == value then
    return 1
  end
  return holder and holder ~= kept .. value and -1 or 0
end
