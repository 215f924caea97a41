package fenceredis_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/contrib/fenceredis"
	"github.com/quorumlock/quorumlock/contrib/fencetest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

var ctx = context.Background()

func start(t *testing.T) (*redistest.Server, fenceredis.Eval) {
	server := redistest.Start(t)
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return server.Dial() }}
	t.Cleanup(func() { pool.Close() })
	return server, fenceredis.Redigo(pool)
}

func TestReal_old_holders_are_refused_in_every_order(t *testing.T) {
	t.Parallel()
	server, eval := start(t)
	opened := 0
	fencetest.Run(t, func() fencetest.Resource {
		opened++
		key := fmt.Sprint("file:", opened)
		return fencetest.Resource{
			Write: func(token uint64, value string, _ func()) error {
				_, err := fenceredis.Write(ctx, eval, key+":token", token, fenceredis.Command{"SET", key, value})
				return err
			},
			Read: func() (string, error) { return redis.String(server.Do("GET", key)) },
		}
	})
}

func TestReal_all_commands_run_in_their_order_or_none(t *testing.T) {
	server, eval := start(t)
	replies, err := fenceredis.Write(ctx, eval, "token", math.MaxUint64,
		fenceredis.Command{"SET", "a", "1"}, fenceredis.Command{"INCRBY", "a", 41}, fenceredis.Command{"GET", "nothing"},
		fenceredis.Command{"RPUSH", "list", []byte("x"), "y"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []any{"OK", int64(42), nil, int64(2)}; !slices.Equal(replies, want) {
		t.Errorf("replies %v, want %v", replies, want)
	}

	_, err = fenceredis.Write(ctx, eval, "token", math.MaxUint64-1,
		fenceredis.Command{"DEL", "a"}, fenceredis.Command{"DEL", "list"})
	if !errors.Is(err, redlock.ErrStale) || !strings.Contains(err.Error(), "token 18446744073709551614, and 18446744073709551615 was seen") {
		t.Errorf("an old holder: %v", err)
	}
	if n, err := redis.Int(server.Do("EXISTS", "a", "list")); n != 2 {
		t.Errorf("%d keys are left of 2: %v", n, err)
	}
	if _, err := fenceredis.Write(ctx, eval, "token", math.MaxUint64); err != nil {
		t.Errorf("no command: %v", err)
	}
}

func TestReal_a_command_that_fails_ends_the_write_and_the_token_is_raised(t *testing.T) {
	server, eval := start(t)
	_, err := fenceredis.Write(ctx, eval, "token", 2,
		fenceredis.Command{"SET", "a", "x"}, fenceredis.Command{"INCR", "a"}, fenceredis.Command{"SET", "b", "x"})
	if err == nil || errors.Is(err, redlock.ErrStale) || !strings.Contains(err.Error(), "not an integer") {
		t.Errorf("INCR of a letter: %v", err)
	}
	if n, err := redis.Int(server.Do("EXISTS", "b")); n != 0 {
		t.Errorf("the command behind it was run: %v", err)
	}
	if _, err := fenceredis.Write(ctx, eval, "token", 1); !errors.Is(err, redlock.ErrStale) {
		t.Errorf("then an old holder: %v", err)
	}
}

func TestReal_a_command_may_have_4000_words(t *testing.T) {
	_, eval := start(t)
	command := make(fenceredis.Command, fenceredis.MaxWords)
	for i := range command {
		command[i] = "key"
	}
	command[0] = "DEL"
	if _, err := fenceredis.Write(ctx, eval, "token", 1, command); err != nil {
		t.Error(err)
	}
}

func TestWrite_refuses_bad_input_before_anything_is_sent(t *testing.T) {
	for _, c := range []struct {
		token   uint64
		command fenceredis.Command
		want    string
		stale   bool
	}{
		{0, fenceredis.Command{"PING"}, `"token": stale fencing token: 0 is no token`, true},
		{1, fenceredis.Command{}, "command 1 has 0 words, want 1 to 4000", false},
		{1, make(fenceredis.Command, 4001), "command 1 has 4001 words, want 1 to 4000", false},
	} {
		_, err := fenceredis.Write(ctx, nil, "token", c.token, c.command)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, redlock.ErrStale) != c.stale {
			t.Errorf("Write says %v, want %q", err, c.want)
		}
	}
}

func ExampleWrite() {
	var (
		lease *redlock.Lease // of a lock with Fenced
		pool  *redis.Pool    // of the Redis with the data
	)
	_, err := fenceredis.Write(lease.Context(), fenceredis.Redigo(pool), "invoices:token", lease.Token(),
		fenceredis.Command{"HSET", "invoices:7", "paid", "yes"})
	if errors.Is(err, redlock.ErrStale) {
		return // a newer holder was here
	}
}
