-- lengthen has a key live for another ttl ms at least. Its end never comes earlier: an
-- extension may arrive behind a later one (S66), or while the clock is set back (S68).
local function lengthen(key, ttl)
  if redis.call('pttl', key) < tonumber(ttl) then
    redis.call('pexpire', key, ttl)
  end
end

