// Package fenceredis has a Redis refuse the writes of old lock holders: a key with the highest
// fencing token of a resource, which one script checks and raises before it writes. It depends
// on nothing that the library does not, so it is part of the library's module.
//
// The Redis is any that stores what the lock protects, and not a master of the lock. If it
// forgets writes, for example in a failover, it may forget tokens with them.
package fenceredis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/redlock"
)

// MaxWords is how many words one command may have, its name included. Redis cannot call
// longer ones from a script.
const MaxWords = 4000

//go:embed write.lua
var script string

// Eval runs a script with its keys and arguments, and returns its reply. Redigo makes one of a
// redigo pool. With go-redis it is
//
//	func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
//		return client.Eval(ctx, script, keys, args...).Result()
//	}
type Eval func(ctx context.Context, script string, keys []string, args ...any) (any, error)

// Pool is a *redis.Pool of redigo.
type Pool interface {
	GetContext(ctx context.Context) (redis.Conn, error)
}

// Redigo runs scripts on connections of a pool, by their hash where the server knows it.
func Redigo(pool Pool) Eval {
	return func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
		conn, err := pool.GetContext(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		words := make([]any, 0, len(keys)+len(args))
		for _, key := range keys {
			words = append(words, key)
		}
		return redis.NewScript(len(keys), script).DoContext(ctx, conn, append(words, args...)...)
	}
}

// Command is a command of Redis: its name and arguments, as the client takes them.
type Command []any

// Write runs commands as one step, unless the key token, which belongs to one resource, has seen
// a higher one: then it runs none of them, and the error is redlock.ErrStale. Zero,
// which stands for a lock that is not fenced, is stale. It returns the commands' replies.
//
// If a command fails, those before it stay done, those behind it are not run, and the token is
// raised. After another error they may have run. In a Redis Cluster, the keys of the commands
// must be in the slot of the token's key: give all of them one hash tag. The token's key has no
// TTL; when the resource is gone, delete it.
func Write(ctx context.Context, eval Eval, key string, token uint64, commands ...Command) ([]any, error) {
	fail := func(err error) ([]any, error) { return nil, fmt.Errorf("fenceredis: write under %q: %w", key, err) }
	if token == 0 {
		return fail(fmt.Errorf("%w: 0 is no token", redlock.ErrStale))
	}
	args := []any{strconv.FormatUint(token, 10)}
	for i, c := range commands {
		if len(c) == 0 || len(c) > MaxWords {
			return fail(fmt.Errorf("command %d has %d words, want 1 to %d", i+1, len(c), MaxWords))
		}
		args = append(append(args, len(c)), c...)
	}
	reply, err := eval(ctx, script, []string{key}, args...)
	if err != nil {
		return fail(err)
	}
	all, err := redis.Values(reply, nil)
	if err != nil || len(all) == 0 {
		return fail(errors.New("unexpected reply"))
	}
	if all[0] != int64(1) {
		return fail(fmt.Errorf("%w: token %d, and %s was seen", redlock.ErrStale, token, all[len(all)-1]))
	}
	return all[1:], nil
}
