-- needs: counter lengthen queue
-- inspect: all that is known of a lock, of whatever kind. It changes nothing.
-- KEYS[1] lock   KEYS[2] counter   KEYS[3] queue   KEYS[4] entries   KEYS[5] intent
-- KEYS[6] readers   KEYS[7] their values
-- KEYS[8] slots   KEYS[9] queue of a semaphore   KEYS[10] what its holders have
-- KEYS[11] how many permits there are   KEYS[12] entries of a semaphore's queue
-- KEYS[13] waiters of the slots
-- ARGV[1] where the page before ended, or nothing: the first page
-- {value, or nil when it is free, remaining TTL in ms, counter, how many wait, 1 if
-- somebody waits to read or write, how many permits and, behind a space, by which
-- Resize, the slots that are taken, of the first of those who wait: {ticket, how it
-- is served and its value, ...}, where this page ends, or '' if it is the last; then
-- of every reader and holder of permits: value, its slots or '', remaining ms}
local most = 1000 -- of those who wait, and on a page

-- A page ends within readers (r) or slots (s), by the end of the last one told: those
-- that end then and were told are skipped. Who is renewed meanwhile is told twice.
local kind, from, skip = string.match(ARGV[1] or '', '^([rs]) (%d+) (%d+)$')

-- see reads what is beside the lock. A user who may not sees less.
local function see(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then
    return nil
  end
  return answer
end

-- living returns the members of a sorted set whose time is not over.
local moment = now()
local function living(key)
  return see('zrangebyscore', key, '(' .. whole(moment), '+inf') or {}
end

-- waiting returns the tickets and entries of those who wait, the next one first.
local function waiting(queue, entries)
  local all = {}
  local found = see('zrange', queue, 0, most - 1, 'WITHSCORES') or {}
  for i = 1, #found, 2 do
    local deadline, rest = string.match(see('hget', entries, found[i]) or '', '^(%d+) (.*)$')
    if deadline and tonumber(deadline) > moment and found[i] ~= nobody then
      all[#all + 1] = found[i + 1]
      all[#all + 1] = rest
    end
  end
  return all
end

local head = (see('zrange', KEYS[3], 0, 0) or {})[1]
local entry = head and see('hget', KEYS[4], head) or ''
local shared = see('exists', KEYS[5]) == 1 or string.match(entry, '^%d+ r ')
local slots = kind and {} or living(KEYS[8])
local answer = {
  redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]), tonumber(see('get', KEYS[2]) or 0) or 0,
  (see('zcard', KEYS[3]) or 0) - (see('zscore', KEYS[3], nobody) and 1 or 0) + (see('zcard', KEYS[9]) or 0), shared and 1 or 0,
  see('get', KEYS[11]) or '', table.concat(slots, ','), kind and {} or waiting(KEYS[head and 3 or 9], KEYS[head and 4 or 12]), '',
}

-- page tells of the members of a sorted set up to the end of the page, and reports
-- whether that was reached.
local function page(which, key, each)
  local min, passed = from or '(' .. whole(moment), tonumber(skip) or 0
  if kind ~= which then min, passed = '(' .. whole(moment), 0 end
  local found = see('zrangebyscore', key, min, '+inf', 'WITHSCORES', 'LIMIT', passed, most) or {}
  for i = 1, #found, 2 do
    local till = tonumber(found[i + 1])
    passed = whole(till) == min and passed + 1 or 1
    min = whole(till)
    if till > moment then each(found[i], till - moment) end
  end
  if #found < 2 * most then return false end
  answer[9] = which .. ' ' .. min .. ' ' .. passed
  return true
end
local function told(value, list, rest)
  answer[#answer + 1] = value
  answer[#answer + 1] = list
  answer[#answer + 1] = rest
end

local full = kind ~= 's' and page('r', KEYS[6], function(waiter, rest)
  told(see('hget', KEYS[7], waiter) or '', '', rest)
end)
if not full then
  page('s', KEYS[8], function(slot, rest)
    local waiter = see('hget', KEYS[13], slot)
    local list, value = string.match(waiter and see('hget', KEYS[10], waiter) or '', '^(%S*) (.*)$')
    if list and string.match(list, '^%d+') == slot then
      told(value, list, rest)
    end
  end)
end
return answer
