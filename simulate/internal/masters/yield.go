package masters

import (
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file models yield.lua, and what queue.lua does during a pause, in which the lock is left to
// clients that do not queue.

// pause is the waiter of a pause. It has no client, and is the first in the queue.
const pause = "/"

func (ks *Keyspace) yield(keys, args []string) (any, *wire.ServerError) {
	q := QueueKeys{keys[1], keys[2], keys[3]}
	holder, _ := SplitValue(args[0])
	ks.unqueue(q, holder)
	if ks.Find(q.Order) == nil {
		return int64(0), nil
	}
	ks.register(q, pause, "-1", args[1], "w"+args[1], pause)
	ks.call(keys[0], q, 8)
	return int64(1), nil
}

// lengthOf returns the length of a pause in ms.
func lengthOf(how string) int64 {
	ms, _ := strconv.ParseInt(how[1:], 10, 64)
	return ms
}

// Yields reports whether there is a pause.
func (ks *Keyspace) Yields(name string) bool {
	q := wire.QueueOf("", name)
	deadline, how, _, ok := ks.registered(QueueKeys{Order: q.Order, entries: q.Entries, Marker: q.Marker}, pause)
	rest := deadline - ks.Millis()
	return ok && rest > 0 && rest <= lengthOf(how)
}

// left returns for how many ms a lock is held, or left to those who do not queue.
func (ks *Keyspace) left(lock string, q QueueKeys) int64 {
	if ks.Find(lock) == nil {
		if waiter, rest, _, _ := ks.first(q); waiter == pause {
			return rest
		}
	}
	return ks.pttl(lock)
}

// queues tells whether the holder of a lock takes its turn among those who wait: see queue.lua.
func queues(holder string) int64 {
	if isOwn(holder) || IsCached(holder) {
		return 0
	}
	if parts := strings.SplitN(holder, "/", 3); len(parts) == 3 {
		if number, passes := strings.CutPrefix(strings.TrimPrefix(parts[2], "0"), "P"); passes && isOwn(parts[0]+"/"+parts[1]+"/"+number) {
			return 2
		}
	}
	return 1
}
