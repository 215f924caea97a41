package bench

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// This file is what users of many kinds of locks have today: the algorithms that
// Redisson documents, on ONE master, over a redigo pool. The scripts are ours, one
// for each of its, written from what its documentation says of them; they keep the
// same keys, make the same calls and publish the same messages. What a caller does
// while another caller has the lock is left out: no workload here lets it wait.

// Redisson is its way to a kind of lock. It has none for some.
func Redisson(kind string, callers int) (Subject, bool) {
	lock := redissonKinds[kind]
	return Subject{
		Name: "redisson's way on one", Nodes: 1,
		Open: func(_ context.Context, urls []string) (Client, error) {
			r := &redisson{pool: NewPool(urls[0], callers), id: rand.Text(), kind: lock}
			return r, r.load()
		},
		Keys: redissonKeys,
	}, lock != nil
}

// redissonKeys are the keys of a lock: the keys that must be gone when it is released,
// and the keys that stay.
func redissonKeys(name string) (gone, stay []string) {
	stay = []string{permitsOf(name), name + ":token", name + ":count"}
	return append(parts(name), name, queueOf(name), timeoutsOf(name), name+":leases"), stay
}

func parts(name string) []string   { return []string{name + "a", name + "b", name + "c"} }
func channelOf(name string) string { return "redisson_lock__channel:{" + name + "}" }
func queueOf(name string) string   { return "redisson_lock_queue:{" + name + "}" }
func timeoutsOf(name string) string {
	return "redisson_lock_timeout:{" + name + "}"
}
func permitsOf(name string) string { return name + ":permits" }

//go:embed redisson
var redissonFiles embed.FS

// redissonScripts are all scripts. A refusal is the number of milliseconds for which
// another caller has the lock.
var redissonScripts []*redis.Script

// redissonScript reads a script, which takes so many keys.
func redissonScript(name string, keys int) *redis.Script {
	text, err := redissonFiles.ReadFile("redisson/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	s := redis.NewScript(keys, string(text))
	redissonScripts = append(redissonScripts, s)
	return s
}

var (
	hashLock, hashUnlock         = redissonScript("hash_lock", 1), redissonScript("hash_unlock", 2)
	fencedLock                   = redissonScript("fenced_lock", 2)
	fairLock, fairUnlock         = redissonScript("fair_lock", 3), redissonScript("fair_unlock", 4)
	readLock, readUnlock         = redissonScript("read_lock", 2), redissonScript("read_unlock", 4)
	writeLock, writeUnlock       = redissonScript("write_lock", 1), redissonScript("write_unlock", 2)
	permitAcquire, permitRelease = redissonScript("permit_acquire", 3), redissonScript("permit_release", 3)
	countDown, countOf           = redissonScript("count_down", 2), redissonScript("count_of", 1)
)

// redisson is a client of it.
type redisson struct {
	pool    *redis.Pool
	id      string
	kind    func(*redisson, string) Mutex
	holders atomic.Int64
}

func (r *redisson) Mutex(name string) Mutex { return r.kind(r, name) }
func (r *redisson) Close() error            { return r.pool.Close() }

// holder is what tells one caller from another: a client and a thread.
func (r *redisson) holder() string {
	return r.id + ":" + strconv.FormatInt(r.holders.Add(1), 10)
}

// load has the master know all scripts.
func (r *redisson) load() error {
	conn := r.pool.Get()
	defer conn.Close()
	for _, s := range redissonScripts {
		if err := s.Load(conn); err != nil {
			return err
		}
	}
	return nil
}

// call is one script with its keys and arguments.
type call struct {
	script *redis.Script
	args   []any
}

func calling(s *redis.Script, args ...any) call { return call{s, args} }

// do runs scripts one after the other, as far as each of them says yes.
func (r *redisson) do(yes func(reply any) bool, calls ...call) error {
	conn := r.pool.Get()
	defer conn.Close()
	for _, c := range calls {
		reply, err := c.script.Do(conn, c.args...)
		if err != nil {
			return err
		}
		if !yes(reply) {
			return errTaken
		}
	}
	return nil
}

// together runs scripts in one round trip.
func (r *redisson) together(calls ...call) error {
	conn := r.pool.Get()
	defer conn.Close()
	for _, c := range calls {
		if err := c.script.SendHash(conn, c.args...); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	var errs []error
	for range calls {
		reply, err := conn.Receive()
		if err == nil && reply == nil {
			err = errNotHeld
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// nothing is the reply of a script that took the lock; otherwise it is for how long
// another caller has it.
func nothing(reply any) bool { return reply == nil }

// scripted is a lock that calls take and calls give back.
type scripted struct {
	redisson   *redisson
	yes        func(any) bool
	take, give func() []call
}

func (s *scripted) Lock(context.Context) (Lease, error) {
	if err := s.redisson.do(s.yes, s.take()...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *scripted) Unlock(context.Context) error { return s.redisson.together(s.give()...) }

func always(calls ...call) func() []call { return func() []call { return calls } }

var ttlMillis = TTL.Milliseconds()

// unlocked is the message when a lock is free.
const unlocked = 0

// redissonKinds makes a lock of each kind for one caller.
var redissonKinds = map[string]func(*redisson, string) Mutex{
	"mutex": func(r *redisson, name string) Mutex {
		take, give := r.lock(name, r.holder())
		return &scripted{r, nothing, always(take), always(give)}
	},
	"re-entrant": func(r *redisson, name string) Mutex {
		take, give := r.lock(name, r.holder())
		return &scripted{r, nothing, always(take, take), always(give, give)}
	},
	"multi of 3": func(r *redisson, name string) Mutex {
		holder := r.holder()
		var takes, gives []call
		for _, part := range parts(name) {
			take, give := r.lock(part, holder)
			takes, gives = append(takes, take), append(gives, give)
		}
		return &scripted{r, nothing, always(takes...), always(gives...)} // taken one after the other
	},
	"fenced": func(r *redisson, name string) Mutex {
		holder := r.holder()
		_, give := r.lock(name, holder)
		isToken := func(reply any) bool { all, _ := reply.([]any); return len(all) == 2 && all[0] == int64(-1) }
		return &scripted{r, isToken, always(calling(fencedLock, name, name+":token", ttlMillis, holder)), always(give)}
	},
	"fair": func(r *redisson, name string) Mutex {
		holder := r.holder()
		queue, timeouts := queueOf(name), timeoutsOf(name)
		return &scripted{r, nothing,
			func() []call {
				return []call{calling(fairLock, name, queue, timeouts, ttlMillis, holder, waitMillis, time.Now().UnixMilli())}
			},
			func() []call {
				return []call{calling(fairUnlock, name, queue, timeouts, channelOf(name), unlocked, ttlMillis, holder, time.Now().UnixMilli())}
			}}
	},
	"read": func(r *redisson, name string) Mutex {
		holder := r.holder()
		timeout := "{" + name + "}:" + holder + ":rwlock_timeout"
		return &scripted{r, nothing,
			always(calling(readLock, name, timeout, ttlMillis, holder, holder+":write")),
			always(calling(readUnlock, name, channelOf(name), timeout, "{"+name+"}", unlocked, holder))}
	},
	"write": func(r *redisson, name string) Mutex {
		writer := r.holder() + ":write"
		return &scripted{r, nothing,
			always(calling(writeLock, name, ttlMillis, writer)),
			always(calling(writeUnlock, name, channelOf(name), unlocked, ttlMillis, writer))}
	},
	"semaphore": func(r *redisson, name string) Mutex {
		if err := r.set(permitsOf(name), permitsHere); err != nil {
			return broken{err}
		}
		holder, number, leases := r.holder(), 0, name+":leases"
		permit := func() string { return fmt.Sprintf("%s:%d", holder, number) }
		return &scripted{r, nothing,
			func() []call {
				number++
				now := time.Now().UnixMilli()
				return []call{calling(permitAcquire, permitsOf(name), leases, channelOf(name), 1, now+ttlMillis, permit(), now)}
			},
			func() []call {
				return []call{calling(permitRelease, permitsOf(name), leases, channelOf(name), permit(), 1)}
			}}
	},
	"latch": func(r *redisson, name string) Mutex {
		count := name + ":count"
		if err := r.set(count, latchHere); err != nil {
			return broken{err}
		}
		return &scripted{r, func(any) bool { return true },
			always(calling(countDown, count, channelOf(name), unlocked)), always(calling(countOf, count))}
	},
}

// lock are the scripts of a re-entrant lock, which the others are made of.
func (r *redisson) lock(name, holder string) (take, give call) {
	return calling(hashLock, name, ttlMillis, holder),
		calling(hashUnlock, name, channelOf(name), unlocked, ttlMillis, holder)
}

// set stores a number that is not there yet.
func (r *redisson) set(key string, n int) error {
	conn := r.pool.Get()
	defer conn.Close()
	_, err := conn.Do("SET", key, n, "NX")
	return err
}

// waitMillis is for how long it keeps the place of a waiter in a fair lock's queue.
const waitMillis = 300_000
