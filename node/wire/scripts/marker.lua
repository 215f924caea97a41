-- marker: read this master's marker, its time, its role and the offsets of its clock that
-- clients have stored, and replace the marker and the offsets if they have not changed.
-- KEYS[1] marker   ARGV[1] the marker seen, or ''   ARGV[2] the new one, or '' to only read
-- ARGV[3] the offsets seen, or ''   ARGV[4] the new ones, or '' to only read; without both,
-- the offsets are neither read nor written
-- {marker or '', seconds and microseconds of TIME, INFO replication or '', offsets or '', or nil
-- if they were not read or are denied}
-- A new marker since 0 becomes one since now. The master itself sets that time: the client's would be
-- that of its look, and the master may have lost its memory since then.
local marker = redis.call('get', KEYS[1]) or ''
-- pcall: without the permission, the time or the role is not watched.
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
  -- The key is not among KEYS: without the permission for it, the marker can still be read.
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
