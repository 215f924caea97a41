-- needs: number lengthen queue first tell head rw
-- write_repair: put a writer back if the lock is free. SET NX would not see the readers.
-- KEYS as in rw   ARGV[1] value   ARGV[2] ttl in ms
-- OK, or nil if another client has it
about(KEYS)
sweep(now())
if redis.call('zcard', readers) > 0 then
  return false
end
return redis.call('set', lock, ARGV[1], 'NX', 'PX', ARGV[2])
