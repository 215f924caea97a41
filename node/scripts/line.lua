-- line: what stands before release, releases and wake.
-- The line of those who wait for a lock is a sorted set of the channels by which
-- they are woken, first come first. Before them stands, with a score below zero,
-- the turn: '!' and the channel of whoever was woken last. probe.lua says what
-- it is for.
local function wakeFirst(line)
  while true do
    local first = redis.pcall('zpopmin', line)
    if not first[1] then
      return 0
    end
    -- An old turn is over. Who has gone without leaving the line has no
    -- subscription. pcall: who may not publish can still release.
    local heard = tonumber(first[2]) < 0 and 0 or redis.pcall('publish', first[1], '')
    if heard ~= 0 then
      local alone = redis.pcall('exists', line) == 0
      redis.pcall('zadd', line, -2, '!' .. first[1])
      if alone then
        redis.pcall('pexpire', line, 10)
      end
      return 1
    end
  end
end
