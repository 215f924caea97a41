package masters

import (
	"strconv"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file models rw.lua and the scripts of a read-write lock.

// rwKeys are the keys of a read-write lock.
type rwKeys struct {
	lock                     string
	queue                    QueueKeys
	readers, reading, intent string
}

func rwOf(keys []string) rwKeys {
	return rwKeys{keys[0], QueueKeys{keys[1], keys[2], keys[3]}, keys[4], keys[5], keys[6]}
}

// rw adapts a function on the keys of a read-write lock to a script. It begins as all of
// them do, and drops readers whose time is over.
func rw(f func(ks *Keyspace, k rwKeys, args []string) any) func(*Keyspace, []string, []string) (any, *wire.ServerError) {
	return func(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
		k := rwOf(keys)
		for _, m := range ks.Members(k.readers) {
			if m.Score <= ks.Millis() {
				ks.stopReading(k, m.Member)
			}
		}
		return f(ks, k, args), nil
	}
}

func (ks *Keyspace) stopReading(k rwKeys, waiter string) {
	ks.zrem(k.readers, waiter)
	ks.hdel(k.reading, waiter)
}

// readOn adds a reader, or lets one go on.
func (ks *Keyspace) readOn(k rwKeys, waiter, value string, ms int64) {
	before, _ := ks.Score(k.readers, waiter)
	till := max(ks.Millis()+ms, before) // see lengthen
	ks.zadd(k.readers, waiter, till)
	ks.hset(k.reading, waiter, value)
	ks.together(till-ks.Millis(), k.readers, k.reading)
}

func (ks *Keyspace) unqueueRW(k rwKeys, waiter string) {
	ks.unqueue(k.queue, waiter)
	ks.zrem(k.intent, waiter)
}

// firstWriter returns the writer with the lowest ticket that waits and is present; empty:
// none.
func (ks *Keyspace) firstWriter(k rwKeys, asker string) (writer string, ticket int64) {
	for {
		waiting := ks.Members(k.intent)
		if len(waiting) == 0 {
			return "", 0
		}
		if deadline, _, _, ok := ks.registered(k.queue, waiting[0].Member); ok && deadline > ks.Millis() && (waiting[0].Member == asker || ks.present(k.queue.Marker, waiting[0].Member)) {
			return waiting[0].Member, waiting[0].Score
		}
		ks.unqueueRW(k, waiting[0].Member)
	}
}

// serveRW tells the waiters whose turn it is. A writer that is gone does not block
// those behind it.
func (ks *Keyspace) serveRW(k rwKeys, asker string) {
	if ks.Find(k.queue.Order) == nil || ks.Find(k.lock) != nil {
		return
	}
	told := false // a reader was, who goes before the writer
	for {
		writer, ticket := ks.firstWriter(k, asker)
		for _, m := range ks.Members(k.queue.Order) {
			if writer != "" && m.Score > ticket {
				break
			}
			deadline, how, value, ok := ks.registered(k.queue, m.Member)
			ok = ok && deadline > ks.Millis()
			if ok && how != "r" && (told || len(ks.Members(k.readers)) > 0) {
				return
			}
			if !ok || !ks.tell(k.lock, k.queue.Marker, m.Member, value, ":t") {
				ks.unqueueRW(k, m.Member)
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
func (ks *Keyspace) standingRW(k rwKeys) any {
	rest := ks.pttl(k.lock)
	if reading := ks.Members(k.readers); len(reading) > 0 {
		rest = max(rest, reading[len(reading)-1].Score-ks.Millis())
	}
	return []any{rest, int64(0)}
}

func (ks *Keyspace) write(k rwKeys, args []string) any {
	value, ttl, ticket, hold := args[0], args[1], args[2], len(args) > 3
	waiter, n := SplitValue(value)
	holder, _ := ks.text(k.lock)
	theirs, held := SplitValue(holder)
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
	if holder != "" || behind || hold || len(ks.Members(k.readers)) > 0 {
		if behind && !hold {
			ks.serveRW(k, waiter)
		}
		return ks.standingRW(k)
	}
	ks.set(k.lock, []string{value, "PX", ttl})
	ks.unqueueRW(k, waiter)
	return "OK"
}

func (ks *Keyspace) read(k rwKeys, args []string) any {
	value, ttl, ticket, hold := args[0], args[1], args[2], len(args) > 3
	waiter, n := SplitValue(value)
	mine, isMine := ks.hget(k.reading, waiter)
	if _, read := SplitValue(mine); ks.overtaken(k.queue, waiter, n) || isMine && read > n {
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
	waits := ks.Variant != NoIntent && writer != "" && (ticket == "-" || before(at, writer, rank, waiter))
	if hold || waits && mine != value || ks.Find(k.lock) != nil {
		if waits && !hold {
			ks.serveRW(k, "")
		}
		return ks.standingRW(k)
	}
	ks.readOn(k, waiter, value, millis(ttl))
	ks.unqueueRW(k, waiter)
	return "OK"
}

// before reports whether a waiter with that ticket goes before another one.
func before(ticket int64, waiter string, otherTicket int64, other string) bool {
	return ticket < otherTicket || ticket == otherTicket && waiter < other
}

func (ks *Keyspace) writeExtend(k rwKeys, args []string) any {
	holder, _ := ks.text(k.lock)
	switch {
	case holder == args[0]:
		extended, _ := ks.lengthen(k.lock, args[1])
		return extended
	case holder != "" || len(ks.Members(k.readers)) > 0:
		return int64(-1)
	}
	return int64(0)
}

func (ks *Keyspace) readExtend(k rwKeys, args []string) any {
	value := args[0]
	waiter, _ := SplitValue(value)
	holder, _ := ks.text(k.lock)
	if _, waits := ks.Score(k.intent, waiter); waits && ks.Variant != KeepsIntent {
		ks.unqueueRW(k, waiter)
		ks.serveRW(k, "")
	}
	if holder != "" && holder != value {
		return int64(-1)
	}
	if mine, _ := ks.hget(k.reading, waiter); holder == "" && mine != value {
		return int64(0)
	}
	ks.readOn(k, waiter, value, max(millis(args[1]), ks.pttl(k.lock)))
	if holder != "" {
		ks.remove(k.lock)
		ks.unqueueRW(k, waiter)
		ks.serveRW(k, "")
	}
	return int64(1)
}

func (ks *Keyspace) writeRepair(k rwKeys, args []string) any {
	if len(ks.Members(k.readers)) > 0 {
		return nil
	}
	taken, _ := ks.set(k.lock, []string{args[0], "NX", "PX", args[1]})
	return taken
}

func (ks *Keyspace) readRepair(k rwKeys, args []string) any {
	if ks.Find(k.lock) != nil {
		return nil
	}
	waiter, _ := SplitValue(args[0])
	ks.readOn(k, waiter, args[0], millis(args[1]))
	return "OK"
}

func (ks *Keyspace) rwRelease(k rwKeys, args []string) any {
	waiter, _ := SplitValue(args[0])
	holder, _ := ks.text(k.lock)
	theirs, _ := SplitValue(holder)
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
	ks.serveRW(k, "")
	return answer
}
