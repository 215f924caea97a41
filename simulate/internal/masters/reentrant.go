package masters

import "github.com/quorumlock/quorumlock/node/wire"

// The scripts of the re-entrant lock V6: a hash of hold counts by holder.
var (
	ScriptEnter = &wire.Script{Name: "enter", Source: `
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return -3
end
return redis.call('pttl', KEYS[1])`}
	ScriptLeave = &wire.Script{Name: "leave", Source: `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local left = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if left > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
else
  redis.call('del', KEYS[1])
end
return 1`}
	ScriptStay = &wire.Script{Name: "stay", Source: `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('pexpire', KEYS[1], ARGV[2])`}
)

func counts(ks *Keyspace, key, field string) (e *Entry, has bool, err *wire.ServerError) {
	e = ks.Find(key)
	if e != nil && e.Hash == nil {
		return nil, false, errWrongType
	}
	if e != nil {
		_, has = e.Hash[field]
	}
	return e, has, nil
}

func enter(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
	e := ks.Find(keys[0])
	if e == nil {
		e = &Entry{Hash: map[string]int64{}}
		ks.Store(keys[0], e)
	} else if _, has, err := counts(ks, keys[0], args[0]); err != nil || !has {
		return reply(ks.pttl(keys[0]), err)
	}
	e.Hash[args[0]]++
	ks.expire(keys[0], args[1], 1)
	return int64(-3), nil
}

func leave(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
	e, has, err := counts(ks, keys[0], args[0])
	if err != nil || !has {
		return reply(0, err)
	}
	if e.Hash[args[0]]--; e.Hash[args[0]] > 0 {
		return ks.expire(keys[0], args[1], 1)
	}
	ks.remove(keys[0])
	return int64(1), nil
}

func stay(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
	if _, has, err := counts(ks, keys[0], args[0]); err != nil || !has {
		return reply(0, err)
	}
	return ks.expire(keys[0], args[1], 1)
}
