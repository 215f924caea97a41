-- permits: what stands behind queue in the scripts of a semaphore.
-- Its permits are slots, numbered from 0. Slots that are taken are a sorted set by
-- when they end on this master's clock, and a hash with the waiter of each; what
-- every waiter has is in a hash: its slots with commas, a space, and its value.
-- KEYS[1] slots   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- KEYS[5] waiters of the slots   KEYS[6] what they have   KEYS[7] how many there are
local slots, queue, entries, marker, owners, held, limit

-- The number of permits may have the order of the Resize that set it behind it.
-- A fenced semaphore has a counter, as a fenced lock has.

-- about says which semaphore the rest is about.
local function about(keys)
  slots, queue, entries, marker, owners, held, limit = unpack(keys)
end

-- parts goes along a list, a thousand at a time, with how many were before: Lua passes
-- on some thousands at most.
local function parts(list)
  local passed = -1000
  return function()
    passed = passed + 1000
    if list[passed + 1] then
      return {unpack(list, passed + 1, math.min(passed + 1000, #list))}, passed
    end
  end
end

-- numbers returns the slots of a list with commas.
local function numbers(list)
  local all = {}
  for slot in string.gmatch(list, '%d+') do
    all[#all + 1] = slot
  end
  return all
end

-- size returns how many permits there are, and by which Resize: nil, 0 if nobody
-- has said so.
local function size()
  local k, order = string.match(redis.call('get', limit) or '', '^(%d+) ?(%d*)$')
  return tonumber(k), tonumber(order) or 0
end

local function setSize(k, order)
  redis.call('set', limit, whole(k) .. (order > 0 and ' ' .. whole(order) or ''), 'PX', week)
end

-- resize changes how many permits there are, unless a later Resize has. Of two of
-- the same order the one to more permits is the later. All masters come to the
-- same by that, in whichever order they are told.
local function resize(k, order)
  local stored, last = size()
  if stored and (last > order or last == order and stored > k) then
    return false
  end
  setSize(k, order)
  return true
end

-- counterKey is that of a fenced semaphore.
local function counterKey()
  local b = base(marker)
  return b .. 'token:' .. string.sub(queue, #b + #'permitqueue:' + 1)
end

-- counted moves the counter up to at least the proposal; 0 if it is '-'.
local function counted(proposal)
  return proposal ~= '-' and count(counterKey(), proposal, 16) or 0
end

-- what returns what a waiter has: its slots, and its value.
local function what(waiter)
  return string.match(redis.call('hget', held, waiter) or '', '^(%S*) (.*)$')
end

-- clear frees slots.
local function clear(some)
  redis.call('zrem', slots, unpack(some))
  redis.call('hdel', owners, unpack(some))
end

-- dropAll frees the slots of these waiters.
local function dropAll(waiters)
  local listed, whose = {}, {}
  for some in parts(waiters) do
    for i, has in ipairs(redis.call('hmget', held, unpack(some))) do
      for _, slot in ipairs(numbers(string.match(has or '', '^(%S*) ') or '')) do
        listed[#listed + 1], whose[#whose + 1] = slot, some[i]
      end
    end
    redis.call('hdel', held, unpack(some))
  end
  for some, passed in parts(listed) do
    local theirs = {}
    for i, owner in ipairs(redis.call('hmget', owners, unpack(some))) do
      if owner == whose[passed + i] then
        theirs[#theirs + 1] = some[i]
      end
    end
    if theirs[1] then
      clear(theirs)
    end
  end
end

local function drop(waiter)
  dropAll({waiter})
end

-- sweep frees slots whose time is over, and the others of their waiters.
local function sweep(moment)
  for some in parts(redis.call('zrangebyscore', slots, '-inf', whole(moment))) do
    local known, waiters = {}, {}
    for _, waiter in ipairs(redis.call('hmget', owners, unpack(some))) do
      if waiter and not known[waiter] then
        known[waiter] = true
        waiters[#waiters + 1] = waiter
      end
    end
    dropAll(waiters)
    clear(some)
  end
end

-- taken reports whether anybody but this waiter has one of these slots.
local function taken(list, waiter)
  for some in parts(numbers(list)) do
    for _, owner in ipairs(redis.call('hmget', owners, unpack(some))) do
      if owner and owner ~= waiter then
        return true
      end
    end
  end
  return false
end

-- take gives slots to a waiter, for ttl ms at least: see lengthen.
local function take(waiter, value, list, ttl, moment)
  local till = whole(moment + ttl)
  for some in parts(numbers(list)) do
    local ends, whose = {}, {}
    for _, slot in ipairs(some) do
      ends[#ends + 1], ends[#ends + 2] = till, slot
      whose[#whose + 1], whose[#whose + 2] = slot, waiter
    end
    redis.call('zadd', slots, 'GT', unpack(ends))
    redis.call('hset', owners, unpack(whose))
  end
  redis.call('hset', held, waiter, list .. ' ' .. value)
  together(ttl, slots, owners, held)
end

-- available returns the slots below k that nobody has, in their order from start,
-- and no more than some; and all that are taken.
local function available(k, start, some)
  local found = {}
  local taken = {}
  local all = redis.call('zrange', slots, 0, -1)
  for _, slot in ipairs(all) do
    taken[tonumber(slot)] = true
  end
  for i = start, start + k - 1 do
    if #found == some then
      break
    end
    if not taken[i % k] then
      found[#found + 1] = tostring(i % k) -- some Luas join a single number to a number
    end
  end
  return found, all
end

-- walk goes along the queue for as long as there are slots for those who wait, and
-- returns how many are left behind them. visit may say that one has gone; it ends
-- the walk by 'stop'. There are slots for at most as many waiters as there are slots,
-- but any number may have gone before them.
local function walk(k, moment, asker, visit)
  local free, passed, gone = k - redis.call('zcard', slots), 0, false
  repeat
    gone = false
    for _, waiter in ipairs(redis.pcall('zrange', queue, passed, passed + math.max(free, 0))) do
      local entry = redis.pcall('hget', entries, waiter)
      local deadline, n, value = string.match(type(entry) == 'string' and entry or '', '^(%d+) w(%d+) (.*)$')
      local answer = 'gone'
      if deadline and deadline - moment > 0 then
        if tonumber(n) <= free then
          answer = visit(waiter, value)
        elseif waiter == asker or present(marker, waiter) then
          answer = 'stop'
        end
      end
      if answer == 'stop' then
        return free
      elseif answer == 'gone' then
        leave(queue, entries, waiter, true)
        gone = true
      else
        free, passed = free - n, passed + 1
      end
    end
  until not gone
  return free
end

-- serve tells those who wait whose turn it is, as far as slots are free, and 64 of them
-- at most: those who take slots have the next ones told (L47).
local function serve(k, moment, asker)
  if redis.pcall('exists', queue) == 1 then
    local told = 0
    walk(k, moment, asker, function(waiter, value)
      if told == 64 then
        return 'stop'
      end
      if not tell(slots, marker, waiter, value, ':t') then
        return 'gone'
      end
      told = told + 1
    end)
  end
end

-- callAll tells all who wait, of whatever number of permits they know.
local function callAll(moment)
  for _, waiter in ipairs(redis.pcall('zrange', queue, 0, -1)) do
    local entry = redis.pcall('hget', entries, waiter)
    local deadline, value = string.match(type(entry) == 'string' and entry or '', '^(%d+) w%d+ (.*)$')
    if not deadline or deadline - moment <= 0 or not tell(slots, marker, waiter, value, ':t') then
      leave(queue, entries, waiter)
    end
  end
end

-- isNext reports whether there are slots for a waiter beside those for everybody
-- before it. serve tells just those who are next: who is told and then refused
-- would ask without end. It also returns how many slots are for those before it.
local function isNext(waiter, k, moment)
  local reached = false
  local free = k - redis.call('zcard', slots)
  local left = walk(k, moment, waiter, function(other)
    reached = other == waiter
    return reached and 'stop'
  end)
  return reached, free - left
end

-- refuse answers who does not get what it wants: in how many ms n slots will be
-- free if nobody goes on, and which are now.
local function refuse(n, free, moment)
  local rest = -2
  if n > #free then
    local last = redis.call('zrange', slots, n - #free - 1, n - #free - 1, 'WITHSCORES')[2]
    rest = last and math.max(0, tonumber(last) - moment) or -2
  end
  return {rest, 0, table.concat(free, ',')}
end
