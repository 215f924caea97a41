-- marker: read this master's marker and its clock, and replace the marker if
-- it is still the one that was seen.
-- KEYS[1] marker   ARGV[1] what was seen, '' for none   ARGV[2] the new one, or '' to only read
-- {the marker now, or '', TIME's seconds, TIME's microseconds}
local marker = redis.call('get', KEYS[1]) or ''
if ARGV[2] ~= '' and marker == ARGV[1] then
  redis.call('set', KEYS[1], ARGV[2])
  marker = ARGV[2]
end
-- last, because Redis before 5 refuses to write after asking for the time;
-- pcall: a user who may not ask is only a clock less to watch.
local now = redis.pcall('time')
return {marker, now[1] or '', now[2] or ''}
