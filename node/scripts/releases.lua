-- releases: several releases in one call; each is what release.lua does.
-- KEYS  the locks, then the queue of each, then the entries of each, then the
-- marker   ARGV  the values
-- the answer of each in turn
local n = #ARGV
local held = redis.call('mget', unpack(KEYS, 1, n))
local answers, ours, gone = {}, {}, {}
for i = 1, n do
  local key, holder, waiter = KEYS[i], held[i], waiterOf(ARGV[i])
  if not holder or gone[key] then
    answers[i] = 0
  elseif holder == ARGV[i] or waiter and waiterOf(holder) == waiter then
    answers[i] = 1
    ours[#ours + 1] = key
    gone[key] = true
  else
    answers[i] = -1
  end
end
if #ours > 0 then
  redis.call('del', unpack(ours))
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
    give(KEYS[i], KEYS[n + i], KEYS[2 * n + i], KEYS[3 * n + 1])
  end
end
return answers
