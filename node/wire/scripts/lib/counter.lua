-- counter: the library, after number, of the scripts that raise a fencing counter.

-- A counter lives for a week after its last change.
local week = 604800000

-- above returns the next count after c, and at least the proposal, which is the time of a
-- client in units of micros microseconds. A proposal that would raise the counter by more than a
-- day, and is more than a day ahead of this master's clock, is replaced by the master's time: no
-- wrong clock raises a counter forever. Lua counts exactly up to 2^53. A counter that cannot
-- rise grants nothing, or two grants would have one token (S53).
local function above(c, proposal, micros)
  local n, day = tonumber(proposal), 86400000000 / micros
  if n > c + day then
    local t = redis.call('time')
    local ours = math.floor((t[1] * 1000000 + t[2]) / micros)
    n = n > ours + day and ours or n
  end
  n = math.max(c + 1, n)
  if n > 9007199254740991 then
    error('COUNTER the fencing counter of this lock cannot rise any more: delete it', 0)
  end
  return n
end

-- count raises a fencing counter, to the proposal at least, and returns it.
local function count(counter, proposal, micros)
  local c = above(tonumber(redis.call('get', counter) or 0) or 0, proposal, micros or 1)
  redis.call('set', counter, whole(c), 'PX', week)
  return c
end

-- raise raises a fencing counter to token, and reports whether it was below.
local function raise(counter, token)
  if (tonumber(redis.call('get', counter) or 0) or 0) >= tonumber(token) then
    return false
  end
  redis.call('set', counter, token, 'PX', week)
  return true
end
