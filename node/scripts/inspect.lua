-- inspect: all that is known of a lock, of whatever kind. It changes nothing.
-- KEYS[1] lock   KEYS[2] counter   KEYS[3] queue   KEYS[4] entries   KEYS[5] intent
-- KEYS[6] readers   KEYS[7] their values
-- KEYS[8] slots   KEYS[9] queue of a semaphore   KEYS[10] what its holders have
-- KEYS[11] how many permits there are   KEYS[12] entries of a semaphore's queue
-- {value, or nil when it is free, remaining TTL in ms, counter, how many wait, 1 if
-- somebody waits to read or write, how many permits and, behind a space, by which
-- Resize, the slots that are taken, of the first of those who wait: {ticket, how it
-- is served and its value, ...}; then
-- of every reader and holder of permits: value, its slots or '', remaining ms}
local most = 1000 -- of those who wait

-- see reads what is beside the lock. A user who may not sees less.
local function see(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then
    return nil
  end
  return answer
end

-- living returns the members of a sorted set whose time is not over, and for how
-- long they stay.
local moment = now()
local function living(key)
  local names, rest = {}, {}
  local found = see('zrangebyscore', key, '(' .. whole(moment), '+inf', 'WITHSCORES') or {}
  for i = 1, #found, 2 do
    names[#names + 1] = found[i]
    rest[found[i]] = tonumber(found[i + 1]) - moment
  end
  return names, rest
end

-- waiting returns the tickets and entries of those who wait, the next one first.
local function waiting(queue, entries)
  local all = {}
  local found = see('zrange', queue, 0, most - 1, 'WITHSCORES') or {}
  for i = 1, #found, 2 do
    local deadline, rest = string.match(see('hget', entries, found[i]) or '', '^(%d+) (.*)$')
    if deadline and tonumber(deadline) > moment then
      all[#all + 1] = found[i + 1]
      all[#all + 1] = rest
    end
  end
  return all
end

local head = (see('zrange', KEYS[3], 0, 0) or {})[1]
local entry = head and see('hget', KEYS[4], head) or ''
local shared = see('exists', KEYS[5]) == 1 or string.match(entry, '^%d+ r ')
local slots, slotRest = living(KEYS[8])
local answer = {
  redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]), tonumber(see('get', KEYS[2]) or 0) or 0,
  (see('zcard', KEYS[3]) or 0) + (see('zcard', KEYS[9]) or 0), shared and 1 or 0,
  see('get', KEYS[11]) or '', table.concat(slots, ','), waiting(KEYS[head and 3 or 9], KEYS[head and 4 or 12]),
}
local readers, readerRest = living(KEYS[6])
for _, waiter in ipairs(readers) do
  answer[#answer + 1] = see('hget', KEYS[7], waiter) or ''
  answer[#answer + 1] = ''
  answer[#answer + 1] = readerRest[waiter]
end
for _, have in ipairs(#slots > 0 and see('hvals', KEYS[10]) or {}) do
  local list, value = string.match(have, '^(%S*) (.*)$')
  local rest = slotRest[string.match(list, '^%d+')]
  if rest then
    answer[#answer + 1] = value
    answer[#answer + 1] = list
    answer[#answer + 1] = rest
  end
end
return answer
