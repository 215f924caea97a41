-- releases: several releases in one call; each is what release.lua does, but a
-- key that is no string counts as absent.
-- KEYS  the locks, then the line of each: the lock itself to wake nobody
-- ARGV  the values
-- the answer of each in turn
local n = #ARGV
local held = redis.call('mget', unpack(KEYS, 1, n))
local answers, ours = {}, {}
for i = 1, n do
  if not held[i] then
    answers[i] = 0
  elseif held[i] ~= ARGV[i] then
    answers[i] = -1
  else
    answers[i] = 1
    ours[#ours + 1] = KEYS[i]
  end
end
if #ours == 0 then
  return answers
end
if redis.call('del', unpack(ours)) < #ours then
  -- The same release twice: the second finds nothing.
  local gone = {}
  for i = 1, n do
    if answers[i] == 1 and gone[KEYS[i]] then
      answers[i] = 0
    end
    gone[KEYS[i]] = true
  end
end
-- Mostly nobody waits, which one call tells. What is deleted is deleted: from
-- here on nothing may fail.
if redis.pcall('exists', unpack(KEYS, n + 1)) == 0 then
  return answers
end
for i = 1, n do
  if answers[i] == 1 then
    wakeFirst(KEYS[n + i])
  end
end
return answers
