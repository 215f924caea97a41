-- releases_short: releases if every lock is ours, no counter is below its token, and there
-- are no waiters. This is the usual case, and needs no function of the libraries.
-- the number of locks: all of them are deleted
local n = (#KEYS - 1) / 2
if redis.pcall('exists', unpack(KEYS, n + 1, 2 * n)) == 0 then
  local held, ours = redis.call('mget', unpack(KEYS, 1, n)), true
  for i = 1, n do
    ours = ours and held[i] == ARGV[i]
  end
  if ours and ARGV[n + 1] then
    local marker, counters = KEYS[#KEYS], {}
    for i = 1, n do
      counters[i] = string.sub(marker, 1, -7) .. 'token:' .. string.sub(KEYS[n + i], #marker + 1)
    end
    local counts = redis.call('mget', unpack(counters))
    for i = 1, n do
      ours = ours and counts[i] == ARGV[n + i]
    end
  end
  if ours then
    redis.call('del', unpack(KEYS, 1, n))
    return n
  end
end
-- needs: number counter kept queue first tell give head quit leads failure
-- releases: several calls of release.lua in one.
-- KEYS  the locks, none of them twice, then the queue of each, then the marker
-- ARGV  the values, then the token of each if they are fenced
-- the reply of each in turn, or their number if each is 1: see releases_short
-- The keys of the entries are computed here, and only if there are waiters: each key in a
-- call costs the master time.
local n = (#KEYS - 1) / 2
local marker = KEYS[2 * n + 1]
local held = redis.call('mget', unpack(KEYS, 1, n))
local answers, doomed = {}, {}
local fenced, tokens = ARGV[n + 1], base(marker) .. 'token:'
local ours, counters = {}, {} -- of the fenced locks
for i = 1, n do
  local holder, value = held[i], ARGV[i]
  if not holder then
    answers[i] = 0
  elseif holder ~= value and waiterOf(holder) ~= waiterOf(value) then
    answers[i] = -1
  elseif fenced then
    ours[#ours + 1] = i
    counters[#ours] = tokens .. string.sub(KEYS[n + i], #marker + 1)
  else
    answers[i] = 1
    doomed[#doomed + 1] = KEYS[i]
  end
end
local counts = ours[1] and redis.call('mget', unpack(counters))
for j, i in ipairs(ours) do
  local fine, why = true, nil
  if counts[j] ~= ARGV[n + i] then
    fine, why = pcall(raise, counters[j], ARGV[n + i])
  end
  if fine then
    answers[i] = 1
    doomed[#doomed + 1] = KEYS[i]
  else
    answers[i] = failure(why)
  end
end
if #doomed > 0 then
  redis.call('del', unpack(doomed))
end
-- Usually there are no waiters, which one EXISTS shows.
if redis.pcall('exists', unpack(KEYS, n + 1, 2 * n)) == 0 then
  return answers
end
local entries, waits, led = {}, base(marker) .. 'wait:', {}
for i = 1, n do
  entries[i] = waits .. string.sub(KEYS[n + i], #marker + 1)
  led[i] = held[i] and string.sub(held[i], 1, 1) == kept and leads(KEYS[n + i], entries[i], marker, waiterOf(ARGV[i]))
  if type(answers[i]) ~= 'table' then
    local fine, why = pcall(quit, KEYS[n + i], entries[i], waiterOf(ARGV[i]), answers[i] == 1)
    answers[i] = fine and answers[i] or failure(why)
  end
end
for i = 1, n do
  local done = type(answers[i]) ~= 'table' -- otherwise the release is sent again
  if done and redis.pcall('exists', KEYS[i]) == 0 then
    pcall(give, KEYS[i], KEYS[n + i], entries[i], marker)
  elseif done and led[i] then
    pcall(call, KEYS[i], KEYS[n + i], entries[i], marker, 1)
  end
end
return answers
