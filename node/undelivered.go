package node

import (
	"errors"
	"time"
)

// undelivered keeps releases that did not reach their master, until they can be
// delivered or the key has expired anyway (L3, L5). It is bounded: the newest
// ones are kept. Not safe for concurrent use.
//
// Delivering a release late or twice is harmless, because it compares the value
// and values are never used again.
type undelivered struct {
	limit   int
	list    ring[call]
	dropped uint64
	unsent  map[grant]struct{}
}

// grant is what an acquire asks for and its release gives back.
type grant struct{ key, value string }

func grantOf(cmd *Command) (g grant, ok bool) {
	if len(cmd.Keys) == 0 || len(cmd.Args) == 0 {
		return grant{}, false
	}
	return grant{cmd.Keys[0], cmd.Args[0]}, true
}

// refused notes an acquire that was not sent because there is no connection, or
// no answer: until there is, its release has nothing to release. In a long
// outage such releases would drive out those that are really owed.
func (u *undelivered) refused(cmd *Command) {
	g, ok := grantOf(cmd)
	if !ok || cmd.Op != OpAcquire {
		return
	}
	if u.unsent == nil || len(u.unsent) >= u.limit {
		u.unsent = make(map[grant]struct{}) // to forget is safe: the release is kept
	}
	u.unsent[g] = struct{}{}
}

// pointless reports whether a release is that of an acquire that was not sent.
func (u *undelivered) pointless(cmd *Command) bool {
	g, ok := grantOf(cmd)
	if _, found := u.unsent[g]; !ok || !found {
		return false
	}
	delete(u.unsent, g)
	return true
}

// connected ends what refused noted: from now on a repair may be sent.
func (u *undelivered) connected() { clear(u.unsent) }

func (u *undelivered) keep(k call) {
	if u.list.n >= u.limit {
		u.list.pop()
		u.dropped++
	}
	u.list.push(k)
}

// deliver sends what is still worth sending and keeps what could not be sent.
//
// What a release is worth ends a TTL after it could first be sent again, and not
// a TTL after it was given: a server that hung for longer than that still runs
// the acquire when it goes on, and the TTL of the key starts then.
func (u *undelivered) deliver(now time.Duration, send func(call) error) {
	for range u.list.n {
		k := u.list.pop()
		switch {
		case k.until == 0:
			k.until = now + k.cmd.Keep
		case k.until <= now:
			continue
		}
		if send(k) != nil {
			u.list.push(k)
		}
	}
}

// owed reports whether a command that failed with err is a release that still
// has to reach the master.
func owed(cmd *Command, err error) bool {
	if cmd.Op != OpRelease || cmd.Keep <= 0 {
		return false
	}
	var refusal *ServerError
	if errors.As(err, &refusal) {
		return refusal.Refuses() || refusal.Code == "NOSCRIPT"
	}
	return !errors.Is(err, ErrClosed)
}
