-- ours returns 1 if a lock has that value, 0 if it is absent, or was released and is only
-- kept, and -1 if another client has it.
local function ours(key, value)
  local holder = redis.call('get', key)
  if holder == value then
    return 1
  end
  return holder and holder ~= kept .. value and -1 or 0
end
