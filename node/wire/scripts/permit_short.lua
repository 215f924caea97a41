-- permit_short: what permit does where nobody has a permit or waits for one.
if ARGV[3] == '-' and ARGV[7] == '-' and ARGV[8] ~= 'hold'
  and redis.pcall('exists', KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6]) == 0 then
  local stored, k, n = redis.call('get', KEYS[7]) or ARGV[4], tonumber(ARGV[4]), tonumber(ARGV[5])
  local size, order = string.match(stored, '^(%d+) ?(%d*)$')
  if n <= k and tonumber(size) == k then
    local waiter, t = string.match(ARGV[1], '^([^ ]*):%d+'), redis.call('time')
    local till = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2])
    local mine, free, ends, owners = {}, {}, {}, {}
    for i = 0, math.min(k, 2 * n + 16) - 1 do
      local slot = tostring((ARGV[6] + i) % k)
      if i < n then
        mine[i + 1] = slot
        ends[2 * i + 1], ends[2 * i + 2] = till, slot
        owners[2 * i + 1], owners[2 * i + 2] = slot, waiter
      else
        free[#free + 1] = slot
      end
    end
    for i = 1, 2 * n, 2000 do -- Lua passes on some thousands at most
      redis.call('zadd', KEYS[1], unpack(ends, i, math.min(i + 1999, 2 * n)))
      redis.call('hset', KEYS[5], unpack(owners, i, math.min(i + 1999, 2 * n)))
    end
    mine = table.concat(mine, ',')
    redis.call('hset', KEYS[6], waiter, mine .. ' ' .. ARGV[1])
    redis.call('pexpire', KEYS[1], ARGV[2])
    redis.call('pexpire', KEYS[5], ARGV[2])
    redis.call('pexpire', KEYS[6], ARGV[2])
    redis.call('set', KEYS[7], stored, 'PX', 604800000)
    return {mine, table.concat(free, ','), 0, tonumber(order) or 0}
  end
end
