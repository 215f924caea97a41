-- permit_short: permit if there are no holders and no waiters.
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
    mine = table.concat(mine, ',')
    local fine, why = pcall(function()
      for i = 1, 2 * n, 2000 do -- unpack takes some thousands at most
        redis.call('zadd', KEYS[1], unpack(ends, i, math.min(i + 1999, 2 * n)))
        redis.call('hset', KEYS[5], unpack(owners, i, math.min(i + 1999, 2 * n)))
      end
      redis.call('hset', KEYS[6], waiter, mine .. ' ' .. ARGV[1])
      redis.call('pexpire', KEYS[1], ARGV[2])
      redis.call('pexpire', KEYS[5], ARGV[2])
      redis.call('pexpire', KEYS[6], ARGV[2])
      redis.call('set', KEYS[7], stored, 'PX', 604800000)
    end)
    if not fine then -- our user lacks a right: a release would not find what was stored so far (L97)
      redis.call('del', KEYS[1], KEYS[5], KEYS[6])
      error(why, 0)
    end
    return {mine, table.concat(free, ','), 0, tonumber(order) or 0}
  end
end
-- needs: number counter lengthen queue first tell head register permits
-- permit: take slots of a semaphore, or wait for them.
-- KEYS as in permits
-- ARGV[1] value   ARGV[2] ttl in ms, and for how long we stay registered
-- ARGV[3] ticket, or '-' not to wait   ARGV[4] number of permits
-- ARGV[5] how many we want   ARGV[6] the slot to begin with   ARGV[7] the least counter, or
-- '-' without fencing   ARGV[last] 'hold': see ask
-- {slots, free slots, the counter or 0, the order of the Resize that set the number of permits,
-- and all taken slots if one did and there are any}, else {in how many ms there will be
-- enough, 0, free slots}; the error PERMITS n if the number of permits is n
about(KEYS)
local value, ttl, ticket, k, n = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local hold = ARGV[8] == 'hold'
local waiter = waiterOf(value)
local stored, order = size()
if stored and stored ~= k then
  return redis.error_reply('PERMITS ' .. whole(stored))
end
local moment = now()
sweep(moment)
local mine, old = what(waiter)
local quiet = ticket == '-' and redis.pcall('exists', queue, entries) == 0 -- no waiters
if not quiet and overtaken(entries, waiter, askOf(value)) or old and askOf(old) > askOf(value) then
  return refuse(n, {}, moment)
end
if old and old ~= value then
  drop(waiter)
  mine = nil
end
-- Who does not wait begins elsewhere than others do. Who waits is given slots in the
-- order of the queue, so that all masters give the same to each.
local start, some = ticket == '-' and tonumber(ARGV[6]) or 0, 2 * n + 16 -- enough to agree with others
local free, others = available(k, start, some)
-- After a Resize to fewer, slots are held that there are no more. Not every master
-- knows all of them, so who is given some counts what all masters know.
others = order > 0 and #others > 0 and table.concat(others, ',') or nil
if mine then
  return hold and refuse(n, free, moment) or {mine, table.concat(free, ','), counted(ARGV[7]), order, others}
end
if ticket ~= '-' then
  local refused = register(queue, entries, waiter, ticket, ttl, 'w' .. n, value, moment)
  if refused then
    return refused
  end
end
local behind = false
if ticket == '-' and not quiet then
  local other = head(queue, entries, marker, moment, waiter)
  behind = other and other ~= waiter
elseif ticket ~= '-' then
  local reached, ahead = isNext(waiter, k, moment)
  behind = not reached
  if reached and ahead > 0 then
    free = {unpack(available(k, start, ahead + some), ahead + 1)}
  end
end
if hold or n > #free or n > k - redis.call('zcard', slots) or behind then
  if not hold then
    serve(k, moment, waiter)
  end
  return refuse(n, free, moment)
end
mine = table.concat(free, ',', 1, n)
grant(waiter, value, mine, ttl, moment)
setSize(k, order)
local counter = counted(ARGV[7])
if not quiet then
  leave(queue, entries, waiter)
  serve(k, moment)
end
return {mine, table.concat(free, ',', n + 1), counter, order, others}
