package node

import (
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// crowd is a kind of lock with those who queue for it.
type crowd struct {
	lock []*wire.Command // what the holder sent
	wait func(value string, ticket int64, stay time.Duration) *wire.Command
	held []any           // the keys of what is held
	then []*wire.Command // what may come to pass over a waiter that has gone

	leave func(key string) *wire.Command // for aStranger, of the lock of that name
}

const (
	aHolder   = "c/nnnnnnnnnnnnnnnn/h:0"
	aStranger = "c/nnnnnnnnnnnnnnnn/s:1"
	ofAGhost  = "gone/nnnnnnnnnnnnnnnn/x:2" // the ghost asked last with x:1
)

// folded is so many releases or attempts as the transport sends at once.
func folded(cmds ...*wire.Command) *wire.Command {
	f := new(fold).begin(cmds[0].Script.Many(), cmds[0])
	for _, cmd := range cmds {
		f.add(&call{cmd: cmd})
	}
	return f.complete()
}

// crowds lists every kind of lock that has a queue.
func crowds() map[string]crowd {
	q, rw, p, ttl := wire.QueueOf("", "a"), wire.ReadWriteOf("", "a"), wire.PermitsOf("", "a"), time.Minute
	m, one := wire.ManyOf("", []string{"a", "b"}), wire.ManyOf("", []string{"a"})
	release := func(value string) *wire.Command { return wire.Release("a", q, value, ttl) }
	releases := []*wire.Command{release(aHolder), release(aStranger), release(ofAGhost), folded(release(aHolder), wire.Release("b", wire.QueueOf("", "b"), aHolder, ttl))}
	leave := func(key string) *wire.Command { return wire.Release(key, wire.QueueOf("", key), aStranger, ttl) }
	leaveRW := func(key string) *wire.Command { return wire.ReadWriteOf("", key).Release(aStranger, ttl) }
	permit := func(op wire.Op, value string, ticket int64, stay time.Duration) *wire.Command {
		return p.Take(op, value, stay, ticket, 3, 2, 0, 0)
	}
	return map[string]crowd{
		"mutex": {
			lock: []*wire.Command{wire.Acquire("a", aHolder, ttl)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return wire.Ask("a", q, value, ticket, stay)
			},
			leave: leave,
			held:  []any{"a"},
			then:  append(releases, wire.Ask("a", q, aStranger, 9, ttl)),
		},
		"fenced": {
			lock: []*wire.Command{wire.FencedAcquire("a", q, aHolder, ttl, 1)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return wire.FencedAsk("a", q, value, ticket, stay, 1)
			},
			leave: func(key string) *wire.Command {
				return wire.FencedRelease(key, wire.QueueOf("", key), aStranger, ttl, 0)
			},
			held: []any{"a"},
			then: append(releases, wire.FencedAsk("a", q, aStranger, 9, ttl, 1), wire.FencedRelease("a", q, aHolder, ttl, 7),
				folded(wire.FencedRelease("a", q, aHolder, ttl, 7), wire.FencedRelease("b", wire.QueueOf("", "b"), aHolder, ttl, 7))),
		},
		"fair": {
			lock: []*wire.Command{wire.FairAsk("a", q, aHolder, 0, ttl)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return wire.Ask("a", q, value, ticket, stay)
			},
			leave: leave,
			held:  []any{"a"},
			then: append(releases, wire.FairAsk("a", q, aStranger, 0, ttl), wire.FairAsk("a", q, aStranger, 9, ttl),
				folded(wire.FairAsk("a", q, aStranger, 0, ttl), wire.FairAsk("b", wire.QueueOf("", "b"), aStranger, 0, ttl))),
		},
		"multi": {
			lock: []*wire.Command{m.Take(wire.OpAcquire, aHolder, ttl, 0, 0, wire.WaitForFirst)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return m.Take(wire.OpAsk, value, stay, ticket, 0, wire.WaitForEach)
			},
			leave: func(key string) *wire.Command {
				return wire.ManyOf("", []string{key, key + " too"}).Release(aStranger, ttl, 0)
			},
			held: []any{"a", "b"},
			then: []*wire.Command{
				m.Release(aHolder, ttl, 0), one.Release(aHolder, ttl, 0), m.Release(aStranger, ttl, 0), m.Release(ofAGhost, ttl, 0),
				m.Take(wire.OpAcquire, aStranger, ttl, 0, 0, wire.WaitForFirst),
				m.Take(wire.OpAsk, aStranger, ttl, 9, 0, wire.WaitForFirst), m.Take(wire.OpAsk, aStranger, ttl, 9, 0, wire.WaitForEach),
			},
		},
		"writers": {
			lock: []*wire.Command{rw.Write(wire.OpAcquire, aHolder, ttl, 0)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return rw.Write(wire.OpAsk, value, stay, ticket)
			},
			leave: leaveRW,
			held:  []any{"a"},
			then:  append(rwCommands(rw), rw.ExtendReader(aHolder, ttl)),
		},
		"readers": {
			lock: []*wire.Command{rw.Write(wire.OpAcquire, aHolder, ttl, 0)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return rw.Read(wire.OpAsk, value, stay, ticket)
			},
			leave: leaveRW,
			held:  []any{"a"},
			then:  append(rwCommands(rw), rw.ExtendReader(aHolder, ttl)),
		},
		"writers behind a reader": {
			lock: []*wire.Command{rw.Read(wire.OpAcquire, aHolder, ttl, 0)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return rw.Write(wire.OpAsk, value, stay, ticket)
			},
			leave: leaveRW,
			held:  []any{"redlock:readers:a", "redlock:reading:a"},
			then:  rwCommands(rw),
		},
		"semaphore": {
			lock: []*wire.Command{permit(wire.OpAcquire, aHolder, 0, ttl)},
			wait: func(value string, ticket int64, stay time.Duration) *wire.Command {
				return permit(wire.OpAsk, value, ticket, stay)
			},
			leave: func(key string) *wire.Command { return wire.PermitsOf("", key).Release(aStranger, ttl) },
			held:  []any{"redlock:slots:a", "redlock:owners:a", "redlock:held:a"},
			then: []*wire.Command{
				p.Release(aHolder, ttl), p.Release(aStranger, ttl), p.Release(ofAGhost, ttl),
				folded(p.Release(aHolder, ttl), p.Release(aStranger, ttl)),
				permit(wire.OpAcquire, aStranger, 0, ttl), permit(wire.OpAsk, aStranger, 9, ttl),
				folded(permit(wire.OpAcquire, aStranger, 0, ttl), permit(wire.OpAcquire, "c/nnnnnnnnnnnnnnnn/t:1", 0, ttl)),
				p.Move(aStranger, ttl, "2", 3, 0, 0), p.Extend(aHolder, ttl, "2", 3, 0), p.Resize(4, 1),
			},
		},
	}
}

func rwCommands(rw wire.ReadWrite) []*wire.Command {
	ttl := time.Minute
	return []*wire.Command{
		rw.Release(aHolder, ttl), rw.Release(aStranger, ttl), rw.Release(ofAGhost, ttl),
		folded(rw.Release(aHolder, ttl), rw.Release(aStranger, ttl)),
		rw.Write(wire.OpAcquire, aStranger, ttl, 0), rw.Write(wire.OpAsk, aStranger, ttl, 9),
		rw.Read(wire.OpAcquire, aStranger, ttl, 0), rw.Read(wire.OpAsk, aStranger, ttl, 9),
		folded(rw.Read(wire.OpAcquire, aStranger, ttl, 0), rw.Read(wire.OpAcquire, "c/nnnnnnnnnnnnnnnn/t:1", ttl, 0)),
		folded(rw.Write(wire.OpAcquire, aStranger, ttl, 0), rw.Write(wire.OpAcquire, "c/nnnnnnnnnnnnnnnn/t:1", ttl, 0)),
	}
}

// queued prepares a master: somebody has the lock, and two wait for it that have gone.
// One could still be registered, and the first is not any more.
func (c crowd) queued(t *testing.T, s *redistest.Server) {
	t.Helper()
	do(t, s, "FLUSHALL")
	for _, cmd := range c.lock {
		runOn(t, s, cmd)
	}
	runOn(t, s, c.wait("gone/nnnnnnnnnnnnnnnn/y:1", 2, time.Minute))
	runOn(t, s, c.wait("gone/nnnnnnnnnnnnnnnn/x:1", 1, time.Millisecond))
	time.Sleep(2 * time.Millisecond)
}

// L27: a waiter that has gone is passed over when it is out of the queue. Where the
// master does not let it be taken out, nobody looks at it for ever: a script that has
// written something cannot be killed.
func TestReal_L27_a_waiter_that_cannot_be_removed_hangs_no_master(t *testing.T) {
	for why, refusal := range map[string]struct{ refuse, allow []any }{
		"the user may not": {[]any{"ACL", "SETUSER", "default", "-zrem"}, []any{"ACL", "SETUSER", "default", "+@all"}},
		"no replicas":      {[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	} {
		for name, c := range crowds() {
			t.Run(why+", "+name, func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				for _, cmd := range c.then {
					for _, free := range []bool{false, true} {
						c.queued(t, s)
						if free {
							do(t, s, "DEL", c.held...)
						}
						do(t, s, refusal.refuse[0].(string), refusal.refuse[1:]...)

						answer, err := askWithin(t, s, time.Second, cmd)

						if _, refused := err.(*wire.ServerError); err != nil && !refused {
							t.Fatalf("%s %q, the lock is free: %v: no answer: %v", cmd.Script.Name, cmd.Args, free, err)
						}
						if pong, err := s.Do("PING"); pong != "PONG" {
							t.Fatalf("the master answers no more after %s: %v", cmd.Script.Name, err)
						}
						t.Logf("%s %q, the lock is free: %v: %v %v", cmd.Script.Name, cmd.Args, free, answer, err)
						do(t, s, refusal.allow[0].(string), refusal.allow[1:]...)
					}
				}
			})
		}
	}
}

// askWithin gives a master a command, and waits so long for the answer.
func askWithin(t *testing.T, s *redistest.Server, limit time.Duration, cmd *wire.Command) (any, error) {
	t.Helper()
	conn, err := s.Dial(redis.DialReadTimeout(limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer, err := conn.Do("EVAL", evalArgs(cmd)...)
	if refusal, ok := err.(redis.Error); ok {
		err = wire.Server(refusal.Error())
	}
	return answer, err
}

// L28: a release that finds nothing to delete, and may not take its waiter out of the
// queue, says so: it is sent again.
func TestReal_L28_a_refused_unqueue_is_no_delivered_release(t *testing.T) {
	for code, refuse := range map[string][]any{
		"NOREPLICAS": {"CONFIG", "SET", "min-replicas-to-write", "1"},
		"READONLY":   {"REPLICAOF", "127.0.0.1", "1"}, // nobody is there, so the replica keeps its keys
		"NOPERM":     {"ACL", "SETUSER", "default", "-zrem", "-hdel"},
	} {
		for name, c := range crowds() {
			t.Run(code+", "+name, func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				for _, cmd := range c.lock {
					runOn(t, s, cmd)
				}
				runOn(t, s, c.wait(aStranger, 1, time.Minute))
				do(t, s, refuse[0].(string), refuse[1:]...)
				cmd := c.leave("a")

				if _, err := askWithin(t, s, time.Second, cmd); !errors.Is(err, &wire.ServerError{Code: code}) || !owed(cmd, err) {
					t.Errorf("%s: %v, want %s, so that it is sent again", cmd.Script.Name, err, code)
				}
				if cmd.Script.Many() == nil {
					return
				}
				answer, err := askWithin(t, s, time.Second, folded(cmd, c.leave("another")))
				if answers, ok := answer.([]any); ok {
					err, _ = answers[0].(error)
					if err != nil {
						err = wire.Server(err.Error())
					}
				}
				if !errors.Is(err, &wire.ServerError{Code: code}) || !owed(cmd, err) {
					t.Errorf("%s: %v %v, want %s, so that it is sent again", cmd.Script.Name, answer, err, code)
				}
			})
		}
	}
}

// L97: a release that changes nothing, and cannot take its waiter out of the queue, fails. It does not hand the
// free lock to that waiter.
func TestReal_L97_a_release_that_failed_hands_the_lock_to_nobody(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	q, told := wire.QueueOf("", "a"), listenIn(t, s)
	runOn(t, s, wire.Acquire("a", aHolder, time.Minute))
	runOn(t, s, wire.Ask("a", q, aStranger, 1, time.Minute))
	do(t, s, "DEL", "a")
	do(t, s, "ACL", "SETUSER", "default", "-zrem", "-hdel")
	leave := wire.Release("a", q, aStranger, time.Minute)

	for _, cmd := range []*wire.Command{leave, folded(leave, wire.Release("b", wire.QueueOf("", "b"), aHolder, time.Minute))} {
		for range 2 {
			answer, err := askWithin(t, s, time.Second, cmd)
			if answers, ok := answer.([]any); ok {
				err, _ = answers[0].(error)
			}
			if err == nil {
				t.Errorf("%s is answered %v, and the waiter is still queued", cmd.Script.Name, answer)
			}
		}
	}
	if said, holder := told(), do(t, s, "GET", "a"); len(said) != 0 || holder != nil {
		t.Errorf("the waiter is told %v; the master stores %v", said, holder)
	}
}

// L28: a lock was released, and is kept. A late ask has queued its former holder again. The second release changes
// nothing at the lock, so it fails if it cannot take the waiter out of the queue.
func TestReal_L28_a_second_release_of_a_kept_lock_may_be_refused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	q, first, later := wire.QueueOf("", "a"), "c/nnnnnnnnnnnnnnnn/s:0", "c/nnnnnnnnnnnnnnnn/s:1" // of one waiter
	runOn(t, s, wire.Acquire("a", first, time.Minute))
	runOn(t, s, wire.Keep("a", q, first, time.Minute))
	runOn(t, s, wire.Release("a", q, first, time.Minute).Keeping())
	runOn(t, s, wire.Ask("a", q, later, 1, time.Minute))
	do(t, s, "CONFIG", "SET", "min-replicas-to-write", "1")

	answer, err := askWithin(t, s, time.Second, wire.Release("a", q, later, time.Minute).Keeping())

	if !errors.Is(err, &wire.ServerError{Code: "NOREPLICAS"}) {
		t.Errorf("the release is answered %v, %v, and the waiter is still queued", answer, err)
	}
}

// S46: a waiter that is told that it has the lock has it there. A release hands a lock
// on that has run out, at a master that does not let our user set keys.
func TestReal_S46_nobody_is_told_of_a_lock_that_was_not_given(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	q, told := wire.QueueOf("", "a"), listenIn(t, s)
	do(t, s, "SET", "a", "c/nnnnnnnnnnnnnnnn/h:0")
	runOn(t, s, wire.Ask("a", q, "c/nnnnnnnnnnnnnnnn/w:1", 1, time.Minute))
	do(t, s, "DEL", "a")
	do(t, s, "ACL", "SETUSER", "default", "-set")

	answer, err := askWithin(t, s, time.Second, wire.Release("a", q, "c/nnnnnnnnnnnnnnnn/h:0", time.Minute))

	if answer != int64(0) || err != nil {
		t.Errorf("the release is answered %v, %v, want 0: the test shows nothing", answer, err)
	}
	if said := told(); len(said) != 0 {
		t.Errorf("the waiter is told %v; the master stores %v", said, do(t, s, "GET", "a"))
	}
}
