-- marker: read this master's marker, its clock and what the clients know of its clock,
-- and replace the marker and the latter if they are still what was seen.
-- KEYS[1] marker   ARGV[1] what was seen, '' for none   ARGV[2] the new one, or '' to only read
-- ARGV[3] the offsets seen, '' for none   ARGV[4] the new ones, or '' to only read; both missing: leave them alone
-- {the marker now, or '', TIME's seconds, TIME's microseconds, INFO replication or '', the offsets now, or '', or nil if they were left alone or are denied}
-- A new marker that says since 0 says since now. Only this master knows when that
-- is: one that was looked at long ago may have forgotten and found no marker
-- again, and then nothing else tells that it did.
local marker = redis.call('get', KEYS[1]) or ''
-- pcall: a user who may not ask is only a clock less to watch, or a role.
local now = redis.pcall('time')
local role = redis.pcall('info', 'replication')
if type(role) ~= 'string' then role = '' end
if ARGV[2] ~= '' and marker == ARGV[1] then
  marker = ARGV[2]
  if now[1] then
    marker = string.gsub(marker, '^(%S+) 0 ', '%1 ' .. now[1] .. string.format('%06d', now[2]) .. ' ')
  end
  redis.call('set', KEYS[1], marker)
end
local offsets = false
if ARGV[3] then
  -- The key is not among KEYS: a user who may not touch it must still see the marker.
  local key = string.sub(KEYS[1], 1, -7) .. 'clock'
  offsets = redis.pcall('get', key) or ''
  if type(offsets) == 'table' then
    offsets = string.find(offsets['err'], '^WRONGTYPE') and '' or false -- nil would end the reply
  end
  if offsets == ARGV[3] and ARGV[4] ~= '' then
    local done = redis.pcall('set', key, ARGV[4])
    if not done['err'] then offsets = ARGV[4] end
  end
end
return {marker, now[1] or '', now[2] or '', role, offsets}
