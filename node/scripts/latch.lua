-- The scripts of a latch begin with this.
-- KEYS[1] who has arrived, a set   KEYS[2] marker   KEYS[3] the memory that knew all of
-- them; another memory than the marker's may lack some
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

