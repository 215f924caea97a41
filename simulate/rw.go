package simulate

import (
	"strconv"

	"github.com/quorumlock/quorumlock/node"
)

// This file models rw.lua and the scripts of a read-write lock.

// rwKeys are the keys of a read-write lock.
type rwKeys struct {
	lock                     string
	queue                    queueKeys
	readers, reading, intent string
}

func rwOf(keys []string) rwKeys {
	return rwKeys{keys[0], queueKeys{keys[1], keys[2], keys[3]}, keys[4], keys[5], keys[6]}
}

// rw adapts a function on the keys of a read-write lock to a script. It begins as all of
// them do, and drops readers whose time is over.
func rw(f func(ks *keyspace, k rwKeys, args []string) any) func(*keyspace, []string, []string) (any, *node.ServerError) {
	return func(ks *keyspace, keys, args []string) (any, *node.ServerError) {
		k := rwOf(keys)
		for _, m := range ks.members(k.readers) {
			if m.score <= ks.millis() {
				ks.stopReading(k, m.member)
			}
		}
		return f(ks, k, args), nil
	}
}

func (ks *keyspace) stopReading(k rwKeys, waiter string) {
	ks.zrem(k.readers, waiter)
	ks.hdel(k.reading, waiter)
}

// readOn adds a reader, or extends its time, but never shortens it.
func (ks *keyspace) readOn(k rwKeys, waiter, value, ttl string) {
	ms, _ := strconv.ParseInt(ttl, 10, 64)
	before, _ := ks.score(k.readers, waiter)
	till := max(ks.millis()+ms, before)
	ks.zadd(k.readers, waiter, till)
	ks.hset(k.reading, waiter, value)
	ks.atLeast(till-ks.millis(), k.readers, k.reading)
}

func (ks *keyspace) unqueueRW(k rwKeys, waiter string) {
	ks.unqueue(k.queue, waiter)
	ks.zrem(k.intent, waiter)
}

// firstWriter returns the writer with the lowest ticket that waits and is present; empty:
// none.
func (ks *keyspace) firstWriter(k rwKeys, asker string) (writer string, ticket int64) {
	for {
		waiting := ks.members(k.intent)
		if len(waiting) == 0 {
			return "", 0
		}
		if deadline, _, _, ok := ks.registered(k.queue, waiting[0].member); ok && deadline > ks.millis() && (waiting[0].member == asker || ks.present(k.queue.marker, waiting[0].member)) {
			return waiting[0].member, waiting[0].score
		}
		ks.unqueueRW(k, waiting[0].member)
	}
}

// serveRW tells the waiters whose turn it is. A writer that is gone does not block
// those behind it.
func (ks *keyspace) serveRW(k rwKeys, asker string) {
	if ks.find(k.queue.order) == nil || ks.find(k.lock) != nil {
		return
	}
	told := false // a reader was, who goes before the writer
	for {
		writer, ticket := ks.firstWriter(k, asker)
		for _, m := range ks.members(k.queue.order) {
			if writer != "" && m.score > ticket {
				break
			}
			deadline, how, value, ok := ks.registered(k.queue, m.member)
			ok = ok && deadline > ks.millis()
			if ok && how != "r" && (told || len(ks.members(k.readers)) > 0) {
				return
			}
			if !ok || !ks.tell(k.lock, k.queue.marker, m.member, value, ":t") {
				ks.unqueueRW(k, m.member)
			} else if how != "r" {
				return
			} else {
				told = true
			}
		}
		if writer == "" {
			return
		}
		ks.unqueueRW(k, writer)
	}
}

// standingRW is the answer to a refused caller.
func (ks *keyspace) standingRW(k rwKeys) any {
	rest := ks.pttl(k.lock)
	if reading := ks.members(k.readers); len(reading) > 0 {
		rest = max(rest, reading[len(reading)-1].score-ks.millis())
	}
	return []any{rest, int64(0)}
}

func (ks *keyspace) write(k rwKeys, args []string) any {
	value, ttl, ticket, hold := args[0], args[1], args[2], len(args) > 3
	waiter, n := splitValue(value)
	holder, _ := ks.text(k.lock)
	theirs, held := splitValue(holder)
	if ks.overtaken(k.queue, waiter, n) || theirs == waiter && held > n {
		return ks.standingRW(k)
	}
	if theirs == waiter && holder != value {
		ks.remove(k.lock)
		holder = ""
	}
	if holder == value && hold {
		return ks.standingRW(k)
	} else if holder == value {
		return "OK"
	}
	behind := false
	if ticket != "-" {
		ks.register(k.queue, waiter, ticket, ttl, "w", value)
		rank, _ := strconv.ParseInt(ticket, 10, 64)
		ms, _ := strconv.ParseInt(ttl, 10, 64)
		ks.zadd(k.intent, waiter, rank)
		ks.atLeast(ms, k.intent)
		head, _, _, _ := ks.first(k.queue)
		behind = head != waiter
	}
	if holder != "" || behind || hold || len(ks.members(k.readers)) > 0 {
		if behind && !hold {
			ks.serveRW(k, waiter)
		}
		return ks.standingRW(k)
	}
	ks.set(k.lock, []string{value, "PX", ttl})
	ks.unqueueRW(k, waiter)
	return "OK"
}

func (ks *keyspace) read(k rwKeys, args []string) any {
	value, ttl, ticket, hold := args[0], args[1], args[2], len(args) > 3
	waiter, n := splitValue(value)
	mine, isMine := ks.hget(k.reading, waiter)
	if _, read := splitValue(mine); ks.overtaken(k.queue, waiter, n) || isMine && read > n {
		return ks.standingRW(k)
	}
	if isMine && mine != value {
		ks.stopReading(k, waiter)
	}
	rank, _ := strconv.ParseInt(ticket, 10, 64)
	if ticket != "-" {
		ks.register(k.queue, waiter, ticket, ttl, "r", value)
	}
	writer, at := ks.firstWriter(k, "")
	waits := ks.variant != noIntent && writer != "" && (ticket == "-" || before(at, writer, rank, waiter))
	if hold || waits && mine != value || ks.find(k.lock) != nil {
		if waits && !hold {
			ks.serveRW(k, "")
		}
		return ks.standingRW(k)
	}
	ks.readOn(k, waiter, value, ttl)
	ks.unqueueRW(k, waiter)
	return "OK"
}

// before reports whether a waiter with that ticket goes before another one.
func before(ticket int64, waiter string, otherTicket int64, other string) bool {
	return ticket < otherTicket || ticket == otherTicket && waiter < other
}

func (ks *keyspace) writeExtend(k rwKeys, args []string) any {
	holder, _ := ks.text(k.lock)
	switch {
	case holder == args[0]:
		extended, _ := ks.expire(k.lock, args[1], 1)
		return extended
	case holder != "" || len(ks.members(k.readers)) > 0:
		return int64(-1)
	}
	return int64(0)
}

func (ks *keyspace) readExtend(k rwKeys, args []string) any {
	value, ttl := args[0], args[1]
	waiter, _ := splitValue(value)
	holder, _ := ks.text(k.lock)
	if _, waits := ks.score(k.intent, waiter); waits {
		ks.unqueueRW(k, waiter)
		ks.serveRW(k, "")
	}
	if holder != "" && holder != value {
		return int64(-1)
	}
	if mine, _ := ks.hget(k.reading, waiter); holder == "" && mine != value {
		return int64(0)
	}
	ms, _ := strconv.ParseInt(ttl, 10, 64)
	ks.zadd(k.readers, waiter, ks.millis()+ms) // the latest renewal counts
	ks.readOn(k, waiter, value, ttl)
	if holder != "" {
		ks.remove(k.lock)
		ks.unqueueRW(k, waiter)
		ks.serveRW(k, "")
	}
	return int64(1)
}

func (ks *keyspace) writeRepair(k rwKeys, args []string) any {
	if len(ks.members(k.readers)) > 0 {
		return nil
	}
	taken, _ := ks.set(k.lock, []string{args[0], "NX", "PX", args[1]})
	return taken
}

func (ks *keyspace) readRepair(k rwKeys, args []string) any {
	if ks.find(k.lock) != nil {
		return nil
	}
	waiter, _ := splitValue(args[0])
	ks.readOn(k, waiter, args[0], args[1])
	return "OK"
}

func (ks *keyspace) rwRelease(k rwKeys, args []string) any {
	waiter, _ := splitValue(args[0])
	holder, _ := ks.text(k.lock)
	theirs, _ := splitValue(holder)
	_, reads := ks.hget(k.reading, waiter)
	answer := int64(0)
	switch {
	case holder != "" && theirs == waiter:
		ks.remove(k.lock)
		answer = 1
	case reads:
		ks.stopReading(k, waiter)
		answer = 1
	case holder != "":
		answer = -1
	}
	ks.unqueueRW(k, waiter)
	if len(args) < 2 {
		ks.serveRW(k, "")
	}
	return answer
}
