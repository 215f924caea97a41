-- marker: read this master's marker and its clock, and replace the marker if
-- it is still the one that was seen.
-- KEYS[1] marker   ARGV[1] what was seen, '' for none   ARGV[2] the new one, or '' to only read
-- {the marker now, or '', TIME's seconds, TIME's microseconds, INFO replication or ''}
-- A new one that says since 0 says since now. Only this master knows when that
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
return {marker, now[1] or '', now[2] or '', role}
