-- latch: the library of the scripts of a latch.
-- KEYS[1] arrivals, a set   KEYS[2] marker   KEYS[3] the memory in which the set was complete;
-- if it is not the marker's, arrivals may be missing   KEYS[4] the number of arrivals and their
-- digest: the sum of their hashes, in four parts of 40 bits
local most = 10000 -- arrivals that are hashed one by one

local function memory()
  local marker, field = redis.pcall('get', KEYS[2]), {}
  if type(marker) == 'string' then
    for word in string.gmatch(marker, '%S+') do field[#field + 1] = word end
  end
  return (string.gsub(field[2] or '', '^%+', '')) .. ' ' .. (field[7] or '')
end
local function whole() return redis.call('get', KEYS[3]) == memory() end
local function keep(ms)
  redis.call('pexpire', KEYS[1], ms)
  redis.call('pexpire', KEYS[3], ms)
end
local function tell(channel, who)
  local marker = redis.pcall('get', KEYS[2])
  redis.pcall('publish', channel, (type(marker) == 'string' and marker or '') .. '\n' .. who)
end

-- size returns the number of arrivals. A user may lack the permission for SCARD.
local function size()
  local n = redis.pcall('scard', KEYS[1])
  return type(n) == 'number' and n or #redis.call('smembers', KEYS[1])
end
local function add(sum, who)
  local hash = redis.sha1hex(who)
  for i = 1, 4 do
    sum[i] = (sum[i] + tonumber(string.sub(hash, 10 * i - 9, 10 * i), 16)) % 1099511627776
  end
end

-- digest returns the digest of the n arrivals, and whether it is stored. It is computed anew
-- if a client of an older version has added to the set, and is nil for too many arrivals.
local function digest(n)
  local of, a, b, c, d = string.match(redis.call('get', KEYS[4]) or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tonumber(of) == n then
    return {tonumber(a), tonumber(b), tonumber(c), tonumber(d)}, true
  end
  if n > most then return nil end
  local sum = {0, 0, 0, 0}
  if n > 0 then
    for _, who in ipairs(redis.call('smembers', KEYS[1])) do add(sum, who) end
  end
  return sum, n == 0
end
local function text(sum) return string.format('%.0f %.0f %.0f %.0f', sum[1], sum[2], sum[3], sum[4]) end
local function store(n, sum, ms) return redis.pcall('set', KEYS[4], n .. ' ' .. text(sum), 'PX', ms) end

