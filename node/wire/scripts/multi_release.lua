-- multi_release_short: multi_release if all locks are ours and not fenced, and there are no
-- waiters.
local locks = (#KEYS - 1) / 3
if ARGV[2] == '-' and redis.pcall('exists', unpack(KEYS, locks + 1, 2 * locks)) == 0 then
  local held, ours = redis.call('mget', unpack(KEYS, 1, locks)), 0
  for i = 1, locks do
    ours = ours + (held[i] == ARGV[1] and 1 or 0)
  end
  if ours == locks then
    redis.call('del', unpack(KEYS, 1, locks))
    return 1
  end
end
-- needs: number counter queue first tell give quit multi
-- multi_release: delete our locks, leave the queues, and hand the locks on.
-- KEYS as in multi   ARGV[1] value   ARGV[2] token, or '-'   ARGV[3] 'hold': see release
-- 1 all were ours, 0 some were absent, -1 another client holds one
local waiter, answer = waiterOf(ARGV[1]), 1
local held = holders()
local ours = {}
for i = 1, count_ do
  if isOurs(held[i], waiter) then
    ours[#ours + 1] = KEYS[i]
  elseif held[i] then
    answer = -1
  else
    answer = math.min(answer, 0)
  end
end
if #ours == count_ and ARGV[2] ~= '-' then
  raiseAll(ARGV[2])
end
if #ours > 0 then
  redis.call('del', unpack(ours))
end
for i = 1, count_ do
  if redis.pcall('exists', queueOf(i)) == 1 then
    quit(queueOf(i), entriesOf(i), waiter, #ours > 0)
    if redis.pcall('exists', KEYS[i]) == 0 then
      pass(KEYS[i], queueOf(i), entriesOf(i), marker, ARGV[3] == 'hold')
    end
  end
end
return answer
