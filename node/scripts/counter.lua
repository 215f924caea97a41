-- counter: what stands before the scripts that move a fencing counter.

-- whole writes a number with all its digits: tostring keeps 14.
local function whole(x)
  return string.format('%.0f', x)
end

-- A counter lives for a week after its last change.
local week = 604800000

-- count moves a fencing counter up, to at least the proposal.
local function count(counter, proposal)
  local c = math.max((tonumber(redis.call('get', counter) or 0) or 0) + 1, tonumber(proposal))
  redis.call('set', counter, whole(c), 'PX', week)
  return c
end

-- raise moves a fencing counter up to token, and reports whether it was below.
local function raise(counter, token)
  if (tonumber(redis.call('get', counter) or 0) or 0) >= tonumber(token) then
    return false
  end
  redis.call('set', counter, token, 'PX', week)
  return true
end

