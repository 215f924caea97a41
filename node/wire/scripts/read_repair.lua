-- needs: number lengthen queue first tell head rw
-- read_repair: put a reader back if no writer has the lock. Waiting writers do not matter:
-- the reader was before them.
-- KEYS as in rw   ARGV[1] value   ARGV[2] ttl in ms
-- OK, or nil if a writer has it
about(KEYS)
local moment = now()
sweep(moment)
if redis.call('exists', lock) == 1 then
  return false
end
read(waiterOf(ARGV[1]), ARGV[1], tonumber(ARGV[2]), moment)
return redis.status_reply('OK')
