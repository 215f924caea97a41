package masters

import (
	"strconv"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file is fair.lua as Go code.

// fair takes the lock if no waiter is queued for it. Otherwise it queues the caller behind all
// waiters, if the caller wants to wait.
func (ks *Keyspace) fair(keys, args []string) (any, *wire.ServerError) {
	lock, q := keys[0], QueueKeys{keys[1], keys[2], keys[3]}
	value, least, ttl, how := args[0], args[1], args[2], args[3]
	waiter, n := SplitValue(value)
	if ks.overtaken(q, waiter, n) {
		return ks.behind(lock, q, how, 0), nil
	}
	holder, err := ks.text(lock)
	if err != nil {
		return nil, err
	}
	if holder == value {
		return ks.granted(q, how), nil // a repetition of this ask
	}
	if theirs, held := SplitValue(holder); waiter != "" && theirs == waiter {
		if held > n {
			return ks.behind(lock, q, how, 0), nil
		}
		ks.remove(lock) // a grant to an earlier ask
	}
	free := ks.Find(lock) == nil
	if free && ks.firstPresent(q, waiter) == "" {
		if how != "-" {
			ks.count(q.counter(), how, 1)
		}
		ks.set(lock, []string{value, "PX", ttl})
		return ks.granted(q, how), nil
	}
	if least == "-" {
		return ks.behind(lock, q, how, 0), nil
	}
	ticket, queued := ks.Score(q.Order, waiter)
	if !queued {
		ticket, _ = strconv.ParseInt(least, 10, 64)
		if e := ks.Find(q.Order); e != nil {
			ticket = max(ticket, e.Queue[len(e.Queue)-1].Score+1)
		}
	}
	ks.register(q, waiter, strconv.FormatInt(ticket, 10), ttl, how, value)
	if free {
		ks.give(lock, q, waiter)
		if given, _ := ks.text(lock); given == value {
			return ks.granted(q, how), nil
		}
	}
	return ks.behind(lock, q, how, ticket), nil
}

// granted returns the reply to a caller that got the lock.
func (ks *Keyspace) granted(q QueueKeys, how string) any {
	if how == "-" {
		return "OK"
	}
	return ks.Counter(q.counter())
}

// behind returns the reply to a caller that was queued with a ticket; 0: it was not queued.
func (ks *Keyspace) behind(lock string, q QueueKeys, how string, ticket int64) any {
	counter := int64(0)
	if how != "-" {
		counter = ks.Counter(q.counter())
	}
	return []any{ks.left(lock, q), int64(0), counter, ticket}
}
