-- releases: several releases in one call; each is what release.lua does.
-- KEYS  the locks, none of them twice, then the queue of each, then the entries of each, then the
-- marker   ARGV  the values, then the token of each if they are fenced
-- the answer of each in turn
local n = (#KEYS - 1) / 3
local marker = KEYS[3 * n + 1]
local held = redis.call('mget', unpack(KEYS, 1, n))
local answers, ours = {}, {}
local counters, tokens = {}, base(marker) .. 'token:' -- of those that are ours
for i = 1, n do
  local holder, value = held[i], ARGV[i]
  if not holder then
    answers[i] = 0
  elseif holder == value or waiterOf(value) and waiterOf(holder) == waiterOf(value) then
    answers[i] = 1
    ours[#ours + 1] = i
    if ARGV[n + i] then
      counters[#ours] = tokens .. string.sub(KEYS[n + i], #marker + 1)
    end
  else
    answers[i] = -1
  end
end
local counts, doomed = counters[1] and redis.call('mget', unpack(counters)), {}
for j, i in ipairs(ours) do
  local fine, why = true, nil
  if counts and counts[j] ~= ARGV[n + i] then
    fine, why = pcall(raise, counters[j], ARGV[n + i])
  end
  if fine then
    doomed[#doomed + 1] = KEYS[i]
  else
    answers[i] = failure(why)
  end
end
if #doomed > 0 then
  redis.call('del', unpack(doomed))
end
-- Mostly nobody waits, which one call tells. What is deleted is deleted: from
-- here on nothing may fail.
if redis.pcall('exists', unpack(KEYS, n + 1, 2 * n)) == 0 then
  return answers
end
for i = 1, n do
  local queue, entries = KEYS[n + i], KEYS[2 * n + i]
  leave(queue, entries, waiterOf(ARGV[i]) or '')
end
for i = 1, n do
  if redis.pcall('exists', KEYS[i]) == 0 then
    pcall(give, KEYS[i], KEYS[n + i], KEYS[2 * n + i], marker)
  end
end
return answers
