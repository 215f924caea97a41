-- releases: several releases in one call; each is what release.lua does.
-- KEYS  of each release in turn: the lock, and the line if it has one
-- ARGV  of each release in turn: the value, and how many KEYS it has, 1 or 2
-- the answer of each release in turn, which can be an error
local function release(key, line, value)
  local holder = redis.pcall('get', key)
  if type(holder) == 'table' then
    return holder
  end
  if not holder then
    return 0
  end
  if holder ~= value then
    return -1
  end
  local deleted = redis.pcall('del', key)
  if type(deleted) == 'table' then
    return deleted
  end
  while line do
    local first = redis.pcall('zpopmin', line)
    if not first[1] or redis.pcall('publish', first[1], '') ~= 0 then
      break
    end
  end
  return 1
end

local answers, at = {}, 1
for i = 1, #ARGV, 2 do
  local keys = tonumber(ARGV[i + 1])
  answers[#answers + 1] = release(KEYS[at], keys == 2 and KEYS[at + 1], ARGV[i])
  at = at + keys
end
return answers
