package simulate

import (
	"strconv"

	"github.com/quorumlock/quorumlock/node"
)

// This file is fair.lua as Go code.

// fair takes the lock if nobody waits for it, and otherwise queues behind all who
// do.
func (ks *keyspace) fair(keys, args []string) (any, *node.ServerError) {
	lock, q := keys[0], queueKeys{keys[1], keys[2], keys[3]}
	value, least, ttl, how := args[0], args[1], args[2], args[3]
	waiter, n := splitValue(value)
	if ks.overtaken(q, waiter, n) {
		return ks.behind(lock, q, how, 0), nil
	}
	holder, err := ks.text(lock)
	if err != nil {
		return nil, err
	}
	if holder == value {
		return ks.granted(q, how), nil // this ask, sent once more
	}
	if theirs, held := splitValue(holder); waiter != "" && theirs == waiter {
		if held > n {
			return ks.behind(lock, q, how, 0), nil
		}
		ks.remove(lock) // what an earlier ask was given
	}
	free := ks.find(lock) == nil
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
	ticket, queued := ks.score(q.order, waiter)
	if !queued {
		ticket, _ = strconv.ParseInt(least, 10, 64)
		if e := ks.find(q.order); e != nil {
			ticket = max(ticket, e.queue[len(e.queue)-1].score+1)
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

// granted answers who got the lock.
func (ks *keyspace) granted(q queueKeys, how string) any {
	if how == "-" {
		return "OK"
	}
	return ks.counter(q.counter())
}

// behind answers who was queued with a ticket.
func (ks *keyspace) behind(lock string, q queueKeys, how string, ticket int64) any {
	counter := int64(0)
	if how != "-" {
		counter = ks.counter(q.counter())
	}
	return []any{ks.pttl(lock), int64(0), counter, ticket}
}
