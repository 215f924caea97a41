package bench

import "github.com/gomodule/redigo/redis"

// The scripts of redisson.go. KEYS and ARGV are named at the top of each. A
// refusal is the number of milliseconds for which another caller has the lock.

var redissonScripts = []*redis.Script{
	hashLock, hashUnlock, fencedLock, fairLock, fairUnlock, readLock, readUnlock, writeLock, writeUnlock,
	permitAcquire, permitRelease, countDown, countOf,
}

// A lock is a hash: how often each holder has it. There is one. The release of the
// last hold frees it.
const letGo = `
if redis.call('hexists', lock, holder) == 0 then
  return nil
end
if redis.call('hincrby', lock, holder, -1) > 0 then
  redis.call('pexpire', lock, ttl)
  return 0
end
redis.call('del', lock)`

var (
	hashLock = redis.NewScript(1, `
local lock, ttl, holder = KEYS[1], ARGV[1], ARGV[2]
if redis.call('exists', lock) == 0 or redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return nil
end
return redis.call('pttl', lock)`)

	hashUnlock = redis.NewScript(2, `
local lock, channel, message, ttl, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]`+letGo+`
redis.call('publish', channel, message)
return 1`)

	fencedLock = redis.NewScript(2, `
local lock, token, ttl, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if redis.call('exists', lock) == 0 then
  redis.call('incr', token)
  redis.call('hset', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return {-1, redis.call('get', token)}
end
if redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return {-1, redis.call('get', token)}
end
return {redis.call('pttl', lock), -1}`)
)

// The waiters for a fair lock are in a list, and until when each of them keeps its
// place is in a sorted set, by the clients' clocks.
const fairSweep = `
while true do
  local head = redis.call('lindex', queue, 0)
  if not head then
    break
  end
  local till = redis.call('zscore', timeouts, head)
  if till and tonumber(till) > tonumber(now) then
    break
  end
  redis.call('zrem', timeouts, head)
  redis.call('lpop', queue)
end`

var (
	fairLock = redis.NewScript(3, `
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local ttl, holder, wait, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4]`+fairSweep+`
local isFree = redis.call('exists', lock) == 0
if isFree and (redis.call('exists', queue) == 0 or redis.call('lindex', queue, 0) == holder) then
  redis.call('lpop', queue)
  redis.call('zrem', timeouts, holder)
  for _, other in ipairs(redis.call('zrange', timeouts, 0, -1)) do
    redis.call('zincrby', timeouts, -tonumber(wait), other)
  end
  redis.call('hset', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return nil
end
if redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ttl)
  return nil
end
local last, rest = redis.call('lindex', queue, -1), redis.call('pttl', lock)
if last and last ~= holder then
  local till = redis.call('zscore', timeouts, last)
  rest = till and tonumber(till) - tonumber(now) or rest
end
if redis.call('zadd', timeouts, 'NX', rest + tonumber(wait) + tonumber(now), holder) == 1 then
  redis.call('rpush', queue, holder)
end
return rest`)

	fairUnlock = redis.NewScript(4, `
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local message, ttl, holder, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4]`+fairSweep+letGo+`
local next = redis.call('lindex', queue, 0)
if next then
  redis.call('publish', channel .. ':' .. next, message)
end
return 1`)
)

// A read-write lock is a hash with its mode and its holders, and each hold of a reader
// has a key that ends with it.
var (
	readLock = redis.NewScript(2, `
local lock, timeout, ttl, holder, writer = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('hset', lock, 'mode', 'read')
  redis.call('hset', lock, holder, 1)
  redis.call('set', timeout .. ':1', 1)
  redis.call('pexpire', timeout .. ':1', ttl)
  redis.call('pexpire', lock, ttl)
  return nil
end
if mode == 'read' or redis.call('hexists', lock, writer) == 1 then
  local hold = timeout .. ':' .. redis.call('hincrby', lock, holder, 1)
  redis.call('set', hold, 1)
  redis.call('pexpire', hold, ttl)
  redis.call('pexpire', lock, math.max(redis.call('pttl', lock), tonumber(ttl)))
  return nil
end
return redis.call('pttl', lock)`)

	readUnlock = redis.NewScript(4, `
local lock, channel, timeout, prefix, message, holder = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('publish', channel, message)
  return 1
end
if redis.call('hexists', lock, holder) == 0 then
  return nil
end
local left = redis.call('hincrby', lock, holder, -1)
if left == 0 then
  redis.call('hdel', lock, holder)
end
redis.call('del', timeout .. ':' .. (left + 1))
if redis.call('hlen', lock) > 1 then
  local longest = -3
  for _, other in ipairs(redis.call('hkeys', lock)) do
    local holds = tonumber(redis.call('hget', lock, other))
    for i = holds or 0, 1, -1 do
      longest = math.max(longest, redis.call('pttl', prefix .. ':' .. other .. ':rwlock_timeout:' .. i))
    end
  end
  if longest > 0 then
    redis.call('pexpire', lock, longest)
    return 0
  end
  if mode == 'write' then
    return 0
  end
end
redis.call('del', lock)
redis.call('publish', channel, message)
return 1`)

	writeLock = redis.NewScript(1, `
local lock, ttl, writer = KEYS[1], ARGV[1], ARGV[2]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('hset', lock, 'mode', 'write')
  redis.call('hset', lock, writer, 1)
  redis.call('pexpire', lock, ttl)
  return nil
end
if mode == 'write' and redis.call('hexists', lock, writer) == 1 then
  redis.call('hincrby', lock, writer, 1)
  redis.call('pexpire', lock, redis.call('pttl', lock) + ttl)
  return nil
end
return redis.call('pttl', lock)`)

	writeUnlock = redis.NewScript(2, `
local lock, channel, message, ttl, writer = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('publish', channel, message)
  return 1
end
if mode ~= 'write' or redis.call('hexists', lock, writer) == 0 then
  return nil
end
if redis.call('hincrby', lock, writer, -1) > 0 then
  redis.call('pexpire', lock, ttl)
  return 0
end
redis.call('hdel', lock, writer)
if redis.call('hlen', lock) == 1 then
  redis.call('del', lock)
  redis.call('publish', channel, message)
else
  redis.call('hset', lock, 'mode', 'read')
end
return 1`)
)

// A semaphore whose permits expire is a number, and a sorted set of the permits that
// are held, by when they end on the clients' clocks.
var (
	permitAcquire = redis.NewScript(3, `
local free, leases, channel, n, till, permit, now = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local late = redis.call('zrangebyscore', leases, 0, now)
if #late > 0 then
  redis.call('zrem', leases, unpack(late))
  redis.call('publish', channel, redis.call('incrby', free, #late))
end
local value = redis.call('get', free)
if value and tonumber(value) >= tonumber(n) then
  redis.call('decrby', free, n)
  redis.call('zadd', leases, till, permit)
  return nil
end
local first = redis.call('zrange', leases, 0, 0, 'WITHSCORES')[2]
return first and tonumber(first) - tonumber(now) or -1`)

	permitRelease = redis.NewScript(3, `
local free, leases, channel, permit, n = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
if redis.call('zrem', leases, permit) == 0 then
  return nil
end
redis.call('publish', channel, redis.call('incrby', free, n))
return 1`)
)

// A latch is a number that is counted down.
var (
	countDown = redis.NewScript(2, `
local count, channel, message = KEYS[1], KEYS[2], ARGV[1]
local left = redis.call('decr', count)
if left <= 0 then
  redis.call('del', count)
end
if left == 0 then
  redis.call('publish', channel, message)
end
return left`)

	countOf = redis.NewScript(1, `return redis.call('get', KEYS[1])`)
)
