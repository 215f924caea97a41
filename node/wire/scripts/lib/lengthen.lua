-- lengthen extends a key to ttl ms at least. Its end never becomes earlier: an extension may
-- arrive after a later one (S66), or while the clock is set back (S68).
local function lengthen(key, ttl)
  if redis.call('pttl', key) < tonumber(ttl) then
    redis.call('pexpire', key, ttl)
  end
end

