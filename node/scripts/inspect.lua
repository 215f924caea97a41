-- inspect: who holds the lock, and for how long.
-- KEYS[1] key
-- {value, remaining TTL in ms}, or {nil, -2} when it is free
return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}
