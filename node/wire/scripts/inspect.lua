-- needs: number queue
-- inspect: return the state of a lock of any kind. It changes nothing.
-- KEYS[1] lock   KEYS[2] counter   KEYS[3] queue   KEYS[4] entries   KEYS[5] intent
-- KEYS[6] readers   KEYS[7] their values
-- KEYS[8] slots   KEYS[9] queue of a semaphore   KEYS[10] holdings
-- KEYS[11] number of permits   KEYS[12] entries of a semaphore's queue
-- KEYS[13] waiters of the slots
-- ARGV[1] the end of the previous page; without it, the first page is returned
-- {value, or nil if the lock is free; remaining TTL in ms; counter; number of waiters; 1 if a
-- reader or a writer waits; number of permits, followed by a space and the order of the Resize
-- that set it, if one did; the taken slots; {ticket, how it is served and its value, ...} of the
-- first waiters; the end of this page, or '' if it is the last; then for each reader and each
-- holder of permits: value, its slots or '', remaining ms}
local most = 1000 -- waiters, and holders on a page

-- The end of a page is its kind, readers (r) or slots (s), the expiry of its last holder, and how
-- many of its holders have that expiry: the next page skips them. A holder that renews between
-- two pages may be on both.
local kind, from, skip = string.match(ARGV[1] or '', '^([rs]) (%d+) (%d+)$')

-- see runs a command. Without the permission, that part of the state is missing.
local function see(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then
    return nil
  end
  return answer
end

-- living returns the members of a sorted set that have not expired.
local moment = now()
local function living(key)
  return see('zrangebyscore', key, '(' .. whole(moment), '+inf') or {}
end

-- waiting returns the tickets and entries of the waiters, the next one first.
local function waiting(queue, entries)
  local all = {}
  local found = see('zrange', queue, 0, most - 1, 'WITHSCORES') or {}
  for i = 1, #found, 2 do
    local deadline, rest = string.match(see('hget', entries, found[i]) or '', '^(%d+) (.*)$')
    if deadline and tonumber(deadline) > moment and found[i] ~= pause then
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
  (see('zcard', KEYS[3]) or 0) - (see('zscore', KEYS[3], pause) and 1 or 0) + (see('zcard', KEYS[9]) or 0), shared and 1 or 0,
  see('get', KEYS[11]) or '', table.concat(slots, ','), kind and {} or waiting(KEYS[head and 3 or 9], KEYS[head and 4 or 12]), '',
}

-- page calls each for the members of a sorted set up to the end of the page, and reports
-- whether the page is full.
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
