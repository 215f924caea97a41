-- needs: number counter failure
-- fenced_acquires: several calls of fenced_acquire in one. One MGET reads the counters: a
-- counter changes only when its lock is taken, and no lock is taken twice.
-- KEYS  the locks, then the counter of each
-- ARGV  the values, then the ttl of each, then the least counter that each wants
-- the answer of each in turn
local n = #KEYS / 2
local counts = redis.call('mget', unpack(KEYS, n + 1, 2 * n))
local answers, call = {}, redis.pcall
for i = 1, n do
  local counter, proposal = KEYS[n + i], ARGV[2 * n + i]
  local taken = call('set', KEYS[i], ARGV[i], 'NX', 'PX', ARGV[n + i])
  if not taken then
    local known = call('get', counter)
    answers[i] = type(known) == 'table' and known or {call('pttl', KEYS[i]), 0, tonumber(known or 0)}
  elseif taken.err then
    answers[i] = taken
  elseif counts[i] then
    local least, c = tonumber(proposal), (tonumber(counts[i]) or 0) + 1
    if c < least and least < c + 86400000000 then -- see above
      local moved = call('set', counter, proposal, 'PX', week)
      answers[i] = moved.err and moved or least
    else
      local fine, moved = pcall(count, counter, proposal)
      answers[i] = fine and moved or failure(moved)
    end
  else -- there is no counter, or the key is not one
    local fine, c = pcall(count, counter, proposal)
    answers[i] = fine and c or failure(c)
  end
end
return answers
