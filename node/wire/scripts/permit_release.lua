-- permit_release_short: permit_release if there are no waiters and no slot has expired.
local holder = string.match(ARGV[1], '^([^ ]*):%d+')
if holder and redis.pcall('exists', KEYS[2], KEYS[3]) == 0 then
  local t = redis.call('time')
  local moment = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
  if not redis.call('zrangebyscore', KEYS[1], '-inf', moment)[1] then
    local list = string.match(redis.call('hget', KEYS[6], holder) or '', '^(%S*) ')
    local slots = {}
    for slot in string.gmatch(list or '', '%d+') do
      slots[#slots + 1] = slot
    end
    for i = 1, #slots, 1000 do -- unpack takes some thousands at most
      local mine, last = {}, math.min(i + 999, #slots)
      for j, owner in ipairs(redis.call('hmget', KEYS[5], unpack(slots, i, last))) do
        if owner == holder then
          mine[#mine + 1] = slots[i + j - 1]
        end
      end
      if mine[1] then
        redis.call('zrem', KEYS[1], unpack(mine))
        redis.call('hdel', KEYS[5], unpack(mine))
      end
    end
    redis.call('hdel', KEYS[6], holder)
    return list and 1 or 0
  end
end
-- needs: number counter lengthen queue first tell head quit permits
-- permit_release: release the slots, leave the queue, and notify the next waiters.
-- KEYS as in permits   ARGV[1] value   'hold' changes nothing: waiters are only notified to ask
-- 1 released, 0 we had none
about(KEYS)
local waiter, moment = waiterOf(ARGV[1]), now()
sweep(moment)
local had = what(waiter)
drop(waiter)
quit(queue, entries, waiter, had)
local k = size()
if k then
  pcall(serve, k, moment) -- the release stands, whatever fails here
end
return had and 1 or 0
