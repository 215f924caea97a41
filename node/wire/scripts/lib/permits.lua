-- permits: the library, after counter, lengthen, tell and head, of the scripts of a semaphore.
-- Its permits are slots, numbered from 0. Taken slots are a sorted set, by their end on
-- this master's clock, and a hash with the waiter of each. A second hash has the holding of
-- each waiter: its slots, joined by commas, a space, and its value.
-- KEYS[1] slots   KEYS[2] queue   KEYS[3] entries   KEYS[4] marker
-- KEYS[5] waiters of the slots   KEYS[6] holdings   KEYS[7] number of permits
local slots, queue, entries, marker, owners, held, limit

-- The number of permits may be followed by a space and the order of the Resize that set it.
-- A fenced semaphore has a counter, like a fenced lock.

-- about sets the keys of the semaphore that the functions below work on.
local function about(keys)
  slots, queue, entries, marker, owners, held, limit = unpack(keys)
end

-- parts iterates over a list in parts of a thousand, each with the number of elements before
-- it: unpack takes some thousands at most.
local function parts(list)
  local passed = -1000
  return function()
    passed = passed + 1000
    if list[passed + 1] then
      return {unpack(list, passed + 1, math.min(passed + 1000, #list))}, passed
    end
  end
end

-- numbers returns the slots of a list joined by commas.
local function numbers(list)
  local all = {}
  for slot in string.gmatch(list, '%d+') do
    all[#all + 1] = slot
  end
  return all
end

-- size returns the number of permits, or nil if none is stored, and the order of the Resize
-- that set it, or 0.
local function size()
  local k, order = string.match(redis.call('get', limit) or '', '^(%d+) ?(%d*)$')
  return tonumber(k), tonumber(order) or 0
end

local function setSize(k, order)
  redis.call('set', limit, whole(k) .. (order > 0 and ' ' .. whole(order) or ''), 'PX', week)
end

-- resize sets the number of permits, unless a later Resize has. Of two with the same order,
-- the one to more permits is the later, so all masters reach the same number, in whichever
-- order the two arrive.
local function resize(k, order)
  local stored, last = size()
  if stored and (last > order or last == order and stored > k) then
    return false
  end
  setSize(k, order)
  return true
end

-- counterKey returns the key of a fenced semaphore's counter.
local function counterKey()
  local b = base(marker)
  return b .. 'token:' .. string.sub(queue, #b + #'permitqueue:' + 1)
end

-- counted raises the counter to the proposal at least, and returns it; 0 if the proposal is '-'.
local function counted(proposal)
  return proposal ~= '-' and count(counterKey(), proposal, 16) or 0
end

-- what returns the holding of a waiter: its slots, and its value.
local function what(waiter)
  return string.match(redis.call('hget', held, waiter) or '', '^(%S*) (.*)$')
end

-- clear frees slots.
local function clear(some)
  redis.call('zrem', slots, unpack(some))
  redis.call('hdel', owners, unpack(some))
end

-- dropAll frees the slots of these waiters. The holdings go last: a release that was stopped half-way, since our
-- user lacks a right, finds them when it comes again (L97).
local function dropAll(waiters)
  local listed, whose = {}, {}
  for some in parts(waiters) do
    for i, has in ipairs(redis.call('hmget', held, unpack(some))) do
      for _, slot in ipairs(numbers(string.match(has or '', '^(%S*) ') or '')) do
        listed[#listed + 1], whose[#whose + 1] = slot, some[i]
      end
    end
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
  for some in parts(waiters) do
    redis.call('hdel', held, unpack(some))
  end
end

local function drop(waiter)
  dropAll({waiter})
end

-- sweep frees expired slots, and all other slots of their waiters.
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

-- taken reports whether another waiter has one of these slots.
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

-- take grants slots to a waiter, for ttl ms at least: see lengthen.
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

-- grant is take for a waiter that has no slots. It grants all of them or none: a release would not find what a
-- script has stored that was stopped half-way, since our user lacks a right (L97).
local function grant(waiter, value, list, ttl, moment)
  local fine, why = pcall(take, waiter, value, list, ttl, moment)
  if not fine then
    for some in parts(numbers(list)) do
      clear(some)
    end
    redis.call('hdel', held, waiter)
    error(why, 0)
  end
end

-- available returns at most some free slots below k, in their order from start, and all
-- taken slots.
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

-- walk visits the queued waiters in their order while slots are left for the next one, and
-- returns how many slots are left after them. visit returns 'gone' to remove a departed waiter,
-- and 'stop' to end the walk. A walk passes no more waiters than there are slots, but removes
-- any number.
local function walk(k, moment, asker, visit)
  local free, passed, gone = k - redis.call('zcard', slots), 0, false
  repeat
    gone = false
    for _, waiter in ipairs(redis.pcall('zrange', queue, passed, passed + math.max(free, 0))) do
      local rest, how, value = entryOf(entries, waiter, moment)
      local n, answer = tonumber(string.match(how or '', '^w(%d+)$')), 'gone'
      if n and rest > 0 then
        if n <= free then
          answer = visit(waiter, value)
        elseif waiter == asker or present(marker, waiter) then
          answer = 'stop'
        end
      end
      if answer == 'stop' then
        return free
      elseif answer == 'gone' then
        passOver(queue, entries, waiter)
        gone = true
      else
        free, passed = free - n, passed + 1
      end
    end
  until not gone
  return free
end

-- serve notifies the waiters whose turn it is, as far as slots are free, and 64 of them
-- at most: each waiter that takes slots has the next ones notified (L47).
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

-- callAll notifies all waiters, whatever number of permits they know.
local function callAll(moment)
  for _, waiter in ipairs(redis.pcall('zrange', queue, 0, -1)) do
    local rest, _, value = entryOf(entries, waiter, moment)
    if rest <= 0 or not tell(slots, marker, waiter, value, ':t') then
      leave(queue, entries, waiter)
    end
  end
end

-- isNext reports whether enough slots are free for a waiter and for all waiters before it, and
-- returns how many of them are for the waiters before it. serve notifies exactly the waiters
-- that are next: a waiter that is notified and then refused would ask without end.
local function isNext(waiter, k, moment)
  local reached = false
  local free = k - redis.call('zcard', slots)
  local left = walk(k, moment, waiter, function(other)
    reached = other == waiter
    return reached and 'stop'
  end)
  return reached, free - left
end

-- refuse returns the reply to a refused waiter: in how many ms n slots will be free without
-- renewals, and which slots are free now.
local function refuse(n, free, moment)
  local rest = -2
  if n > #free then
    local last = redis.call('zrange', slots, n - #free - 1, n - #free - 1, 'WITHSCORES')[2]
    rest = last and math.max(0, tonumber(last) - moment) or -2
  end
  return {rest, 0, table.concat(free, ',')}
end
