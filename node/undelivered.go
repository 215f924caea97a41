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
}

func (u *undelivered) keep(k call) {
	if u.list.n >= u.limit {
		u.list.pop()
		u.dropped++
	}
	u.list.push(k)
}

// deliver sends what is still worth sending and keeps what could not be sent.
func (u *undelivered) deliver(now time.Duration, send func(call) error) {
	for range u.list.n {
		k := u.list.pop()
		if k.until <= now {
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
