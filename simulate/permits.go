package simulate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node"
)

// This file models permits.lua and the scripts of a semaphore.

// permitKeys are the keys of a semaphore.
type permitKeys struct {
	slots               string
	queue               queueKeys
	owners, held, limit string
}

// permits adapts a function on the keys of a semaphore to a script.
func permits(f func(ks *keyspace, k permitKeys, args []string) (any, *node.ServerError)) func(*keyspace, []string, []string) (any, *node.ServerError) {
	return func(ks *keyspace, keys, args []string) (any, *node.ServerError) {
		return f(ks, permitKeys{keys[0], queueKeys{keys[1], keys[2], keys[3]}, keys[4], keys[5], keys[6]}, args)
	}
}

// sweepPermits frees slots whose time is over.
func (ks *keyspace) sweepPermits(k permitKeys) {
	for _, m := range ks.members(k.slots) {
		if m.score > ks.millis() {
			return
		}
		if waiter, ok := ks.hget(k.owners, m.member); ok {
			ks.drop(k, waiter)
		}
		ks.zrem(k.slots, m.member)
		ks.hdel(k.owners, m.member)
	}
}

// slotsOf returns the slots that a waiter has, and the value that it took them with.
func (ks *keyspace) slotsOf(k permitKeys, waiter string) (list, value string, ok bool) {
	text, ok := ks.hget(k.held, waiter)
	list, value, _ = strings.Cut(text, " ")
	return list, value, ok
}

// drop frees the slots of a waiter.
func (ks *keyspace) drop(k permitKeys, waiter string) {
	list, _, ok := ks.slotsOf(k, waiter)
	if !ok {
		return
	}
	for slot := range strings.SplitSeq(list, ",") {
		if owner, _ := ks.hget(k.owners, slot); owner == waiter {
			ks.zrem(k.slots, slot)
			ks.hdel(k.owners, slot)
		}
	}
	ks.hdel(k.held, waiter)
}

// takeSlots gives slots to a waiter, for ttl ms.
func (ks *keyspace) takeSlots(k permitKeys, waiter, value, list, ttl string) {
	ms, _ := strconv.ParseInt(ttl, 10, 64)
	for slot := range strings.SplitSeq(list, ",") {
		ks.zadd(k.slots, slot, ks.millis()+ms)
		ks.hset(k.owners, slot, waiter)
	}
	ks.hset(k.held, waiter, list+" "+value)
	ks.atLeast(ms, k.slots, k.owners, k.held)
}

// freeSlots returns up to limit of the total slots that nobody has, from start on.
func (ks *keyspace) freeSlots(k permitKeys, total, start, limit int) []string {
	var free []string
	for i := start; i < start+total && len(free) < limit; i++ {
		slot := strconv.Itoa(i % total)
		if _, taken := ks.score(k.slots, slot); !taken {
			free = append(free, slot)
		}
	}
	return free
}

// takenSlots returns one field that lists all slots that are taken. There is no such
// field if none is, or if the semaphore was never resized.
func (ks *keyspace) takenSlots(k permitKeys, order int64) []any {
	taken := ks.members(k.slots)
	if order == 0 || len(taken) == 0 {
		return nil
	}
	var slots []string
	for _, m := range taken {
		slots = append(slots, m.member)
	}
	return []any{[]byte(strings.Join(slots, ","))}
}

// walk visits the waiters in the order of the queue, as long as there are slots for
// the next one, which may be asker. visit returns whether the waiter is still there, and whether to end
// the walk. walk returns how many slots are left.
func (ks *keyspace) walk(k permitKeys, total int, asker string, visit func(waiter, value string) (there, end bool)) int {
	free, passed, gone := total-len(ks.members(k.slots)), 0, true
	for gone {
		gone = false
		waiting := ks.members(k.queue.order)[passed:]
		for _, m := range waiting[:min(len(waiting), max(free, 0)+1)] {
			deadline, how, value, ok := ks.registered(k.queue, m.member)
			there, n := ok && deadline > ks.millis(), 0
			if there {
				end := false
				if n, _ = strconv.Atoi(how[1:]); n <= free {
					there, end = visit(m.member, value)
				} else {
					there = m.member == asker || ks.present(k.queue.marker, m.member)
					end = there
				}
				if end {
					return free
				}
			}
			if !there {
				ks.unqueue(k.queue, m.member)
				gone = true
				continue
			}
			free, passed = free-n, passed+1
		}
	}
	return free
}

// servePermits tells waiters that it is their turn, as far as the slots go.
func (ks *keyspace) servePermits(k permitKeys, total int, asker string) {
	told := 0
	ks.walk(k, total, asker, func(waiter, value string) (there, end bool) {
		if told == 64 {
			return true, true
		}
		there = ks.tell(k.slots, k.queue.marker, waiter, value, ":t")
		if there {
			told++
		}
		return there, false
	})
}

// isNext reports whether there are slots for a waiter and for everybody before it,
// and how many slots those before it take.
func (ks *keyspace) isNext(k permitKeys, waiter string, total int) (reached bool, ahead int) {
	free := total - len(ks.members(k.slots))
	left := ks.walk(k, total, waiter, func(other, _ string) (there, end bool) {
		reached = other == waiter
		return true, reached
	})
	return reached, free - left
}

// tooFew is the answer to a waiter that does not get n slots.
func (ks *keyspace) tooFew(k permitKeys, n int, free []string) any {
	rest := int64(-2)
	taken := ks.members(k.slots)
	if i := n - len(free) - 1; i >= 0 && i < len(taken) {
		rest = max(0, taken[i].score-ks.millis())
	}
	return []any{rest, int64(0), []byte(strings.Join(free, ","))}
}

// size returns how many permits there are, zero if nobody has said so, and the order
// of the Resize that said so, zero if none did.
func (ks *keyspace) size(k permitKeys) (total int, order int64) {
	stored, _ := ks.text(k.limit)
	size, resized, _ := strings.Cut(stored, " ")
	total, _ = strconv.Atoi(size)
	order, _ = strconv.ParseInt(resized, 10, 64)
	return total, order
}

// resize changes how many permits there are, and reports whether it did: not if a
// later Resize has.
func (ks *keyspace) resize(k permitKeys, total int, order int64) bool {
	if stored, last := ks.size(k); last > order || last == order && stored > total {
		return false
	}
	ks.setSize(k, total, order)
	return true
}

func (ks *keyspace) setSize(k permitKeys, total int, order int64) {
	text := strconv.Itoa(total)
	if order > 0 {
		text += " " + strconv.FormatInt(order, 10)
	}
	ks.store(k.limit, &entry{value: text, until: ks.millis() + counterLife})
}

func otherSize(total int) *node.ServerError { return node.Server("PERMITS " + strconv.Itoa(total)) }

// counted raises the counter of a fenced semaphore and returns it. It returns zero
// for a semaphore that is not fenced.
func (ks *keyspace) counted(k permitKeys, proposal string) int64 {
	if proposal == "-" {
		return 0
	}
	return ks.count(k.counter(), proposal, 16)
}

// counter returns the key of the counter of a fenced semaphore.
func (k permitKeys) counter() string {
	base := strings.TrimSuffix(k.queue.marker, "marker")
	return base + "token:" + strings.TrimPrefix(k.queue.order, base+"permitqueue:")
}

func (ks *keyspace) permit(k permitKeys, args []string) (any, *node.ServerError) {
	value, ttl, ticket, hold := args[0], args[1], args[2], len(args) > 7
	total, _ := strconv.Atoi(args[3])
	n, _ := strconv.Atoi(args[4])
	start, _ := strconv.Atoi(args[5])
	waiter, ask := splitValue(value)
	size, order := ks.size(k)
	if size != 0 && size != total {
		return nil, otherSize(size)
	}
	ks.sweepPermits(k)
	mine, old, has := ks.slotsOf(k, waiter)
	if _, latest := splitValue(old); ks.overtaken(k.queue, waiter, ask) || has && latest > ask {
		return ks.tooFew(k, n, nil), nil
	}
	if has && old != value {
		ks.drop(k, waiter)
		has = false
	}
	some := 2*n + 16
	if ticket != "-" {
		start = 0
	}
	free, taken := ks.freeSlots(k, total, start, some), ks.takenSlots(k, order)
	if has && hold {
		return ks.tooFew(k, n, free), nil
	} else if has {
		return append([]any{[]byte(mine), []byte(strings.Join(free, ",")), ks.counted(k, args[6]), order}, taken...), nil
	}
	if ticket != "-" {
		ks.register(k.queue, waiter, ticket, ttl, "w"+args[4], value)
	}
	var behind bool
	if ticket == "-" {
		head := ks.firstPresent(k.queue, waiter)
		behind = head != "" && head != waiter
	} else {
		reached, ahead := ks.isNext(k, waiter, total)
		if behind = !reached; reached && ahead > 0 {
			free = ks.freeSlots(k, total, start, ahead+some)[ahead:]
		}
	}
	if hold || n > len(free) || n > total-len(ks.members(k.slots)) || behind {
		if !hold {
			ks.servePermits(k, total, waiter)
		}
		return ks.tooFew(k, n, free), nil
	}
	mine = strings.Join(free[:n], ",")
	ks.takeSlots(k, waiter, value, mine, ttl)
	ks.unqueue(k.queue, waiter)
	ks.resize(k, total, order)
	counter := ks.counted(k, args[6])
	ks.servePermits(k, total, "")
	return append([]any{[]byte(mine), []byte(strings.Join(free[n:], ",")), counter, order}, taken...), nil
}

func (ks *keyspace) permitMove(k permitKeys, args []string) (any, *node.ServerError) {
	value, ttl, list := args[0], args[1], args[2]
	total, _ := strconv.Atoi(args[3])
	waiter, ask := splitValue(value)
	ks.sweepPermits(k)
	_, old, has := ks.slotsOf(k, waiter)
	if _, latest := splitValue(old); ks.overtaken(k.queue, waiter, ask) || has && latest > ask {
		return nil, nil
	}
	ks.drop(k, waiter)
	possible := !ks.anyTaken(k, list)
	order, _ := strconv.ParseInt(args[4], 10, 64)
	if size, last := ks.size(k); last == 0 {
		ks.setSize(k, total, order)
	} else if !ks.resize(k, total, order) && size < total && len(args) < 7 {
		possible = false
	}
	counter := int64(0)
	if possible {
		ks.takeSlots(k, waiter, value, list, ttl)
		ks.unqueue(k.queue, waiter)
		counter = ks.counted(k, args[5])
	}
	ks.servePermits(k, total, "")
	if !possible {
		return nil, nil
	}
	return []any{[]byte(list), counter}, nil
}

func (ks *keyspace) anyTaken(k permitKeys, list string) bool {
	for slot := range strings.SplitSeq(list, ",") {
		if _, taken := ks.hget(k.owners, slot); taken {
			return true
		}
	}
	return false
}

func (ks *keyspace) permitExtend(k permitKeys, args []string) (any, *node.ServerError) {
	value, ttl, list := args[0], args[1], args[2]
	total, _ := strconv.Atoi(args[3])
	waiter, _ := splitValue(value)
	ks.sweepPermits(k)
	mine, mineValue, has := ks.slotsOf(k, waiter)
	if has && mineValue == value && mine == list {
		ks.takeSlots(k, waiter, value, list, ttl)
		ks.expire(k.limit, strconv.Itoa(counterLife), 1)
		if args[4] != "-" {
			ks.raise(k.counter(), args[4])
		}
		return int64(1), nil
	}
	if has {
		ks.drop(k, waiter)
		ks.servePermits(k, total, "")
	}
	if ks.anyTaken(k, list) {
		return int64(-1), nil
	}
	return int64(0), nil
}

func (ks *keyspace) permitRelease(k permitKeys, args []string) (any, *node.ServerError) {
	waiter, _ := splitValue(args[0])
	ks.sweepPermits(k)
	_, _, had := ks.slotsOf(k, waiter)
	ks.drop(k, waiter)
	ks.unqueue(k.queue, waiter)
	if total, _ := ks.size(k); total != 0 && len(args) < 2 {
		ks.servePermits(k, total, "")
	}
	if had {
		return int64(1), nil
	}
	return int64(0), nil
}

func (ks *keyspace) permitResize(k permitKeys, args []string) (any, *node.ServerError) {
	total, _ := strconv.Atoi(args[0])
	order, _ := strconv.ParseInt(args[1], 10, 64)
	if !ks.resize(k, total, order) {
		size, _ := ks.size(k)
		return nil, otherSize(size)
	}
	ks.sweepPermits(k)
	ks.callAll(k)
	return int64(1), nil
}

// callAll tells every waiter that it is its turn, and drops those that are gone.
func (ks *keyspace) callAll(k permitKeys) {
	for _, m := range slices.Clone(ks.members(k.queue.order)) {
		deadline, _, value, ok := ks.registered(k.queue, m.member)
		if !ok || deadline <= ks.millis() || !ks.tell(k.slots, k.queue.marker, m.member, value, ":t") {
			ks.unqueue(k.queue, m.member)
		}
	}
}

func (ks *keyspace) permitRaise(k permitKeys, args []string) (any, *node.ServerError) {
	waiter, _ := splitValue(args[0])
	ks.sweepPermits(k)
	if mine, value, _ := ks.slotsOf(k, waiter); value != args[0] || mine != args[1] {
		return int64(-1), nil
	}
	ks.raise(k.counter(), args[2])
	return int64(1), nil
}
