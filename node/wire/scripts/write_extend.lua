-- needs: number lengthen queue first tell head rw
-- write_extend: extend a writer.
-- KEYS as in rw   ARGV[1] value   ARGV[2] ttl in ms
-- 1 extended, 0 the lock is free, -1 another client has it
about(KEYS)
sweep(now())
local holder = redis.call('get', lock)
if holder == ARGV[1] then
  lengthen(lock, ARGV[2])
  return 1
end
return (holder or redis.call('zcard', readers) > 0) and -1 or 0
