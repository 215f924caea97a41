-- lengthen extends a key to ttl ms at least. Its end never becomes earlier: an extension may
-- arrive after a later one (S66), or while the clock is set back (S68).
local function lengthen(key, ttl)
  if redis.call('pttl', key) < tonumber(ttl) then
    redis.call('pexpire', key, ttl)
  end
end

-- together extends a sorted set, and the keys that describe its members, to ttl ms at least. One
-- of the keys may be new, after a loss (L36). If the set is new, the other keys describe no
-- member: one may be from before the clock was set back, and its end is set, even if it is
-- later (L65).
local function together(ttl, set, ...)
  local left = redis.call('pttl', set)
  if left < tonumber(ttl) then
    redis.call('pexpire', set, ttl)
  end
  for _, key in ipairs({...}) do
    if left < 0 or redis.call('pttl', key) < tonumber(ttl) then
      redis.call('pexpire', key, ttl)
    end
  end
end
