package masters

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file models permits.lua and the scripts of a semaphore.

// PermitKeys are the keys of a semaphore.
type PermitKeys struct {
	slots               string
	Queue               QueueKeys
	owners, Held, Limit string
}

// permits adapts a function on the keys of a semaphore to a script.
func permits(f func(ks *Keyspace, k PermitKeys, args []string) (any, *wire.ServerError)) func(*Keyspace, []string, []string) (any, *wire.ServerError) {
	return func(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
		return f(ks, PermitKeys{keys[0], QueueKeys{keys[1], keys[2], keys[3]}, keys[4], keys[5], keys[6]}, args)
	}
}

// sweepPermits frees slots whose time is over.
func (ks *Keyspace) sweepPermits(k PermitKeys) {
	for _, m := range ks.Members(k.slots) {
		if m.Score > ks.Millis() {
			return
		}
		if waiter, ok := ks.hget(k.owners, m.Member); ok {
			ks.drop(k, waiter)
		}
		ks.zrem(k.slots, m.Member)
		ks.hdel(k.owners, m.Member)
	}
}

// SlotsOf returns the slots that a waiter has, and the value that it took them with.
func (ks *Keyspace) SlotsOf(k PermitKeys, waiter string) (list, value string, ok bool) {
	text, ok := ks.hget(k.Held, waiter)
	list, value, _ = strings.Cut(text, " ")
	return list, value, ok
}

// drop frees the slots of a waiter.
func (ks *Keyspace) drop(k PermitKeys, waiter string) {
	list, _, ok := ks.SlotsOf(k, waiter)
	if !ok {
		return
	}
	for slot := range strings.SplitSeq(list, ",") {
		if owner, _ := ks.hget(k.owners, slot); owner == waiter {
			ks.zrem(k.slots, slot)
			ks.hdel(k.owners, slot)
		}
	}
	ks.hdel(k.Held, waiter)
}

// takeSlots gives slots to a waiter, for ttl ms at least: see lengthen.
func (ks *Keyspace) takeSlots(k PermitKeys, waiter, value, list, ttl string) {
	ms := millis(ttl)
	for slot := range strings.SplitSeq(list, ",") {
		before, _ := ks.Score(k.slots, slot)
		ks.zadd(k.slots, slot, max(ks.Millis()+ms, before))
		ks.hset(k.owners, slot, waiter)
	}
	ks.hset(k.Held, waiter, list+" "+value)
	ks.together(ms, k.slots, k.owners, k.Held)
}

// freeSlots returns up to limit free slots of the total, from start on.
func (ks *Keyspace) freeSlots(k PermitKeys, total, start, limit int) []string {
	var free []string
	for i := start; i < start+total && len(free) < limit; i++ {
		slot := strconv.Itoa(i % total)
		if _, taken := ks.Score(k.slots, slot); !taken {
			free = append(free, slot)
		}
	}
	return free
}

// takenSlots returns one field that lists all taken slots. It returns no field if no slot is
// taken, or if the semaphore was never resized.
func (ks *Keyspace) takenSlots(k PermitKeys, order int64) []any {
	taken := ks.Members(k.slots)
	if order == 0 || len(taken) == 0 {
		return nil
	}
	var slots []string
	for _, m := range taken {
		slots = append(slots, m.Member)
	}
	return []any{[]byte(strings.Join(slots, ","))}
}

// walk visits the waiters in the order of the queue, as long as there are slots for
// the next one, which may be asker. visit returns whether the waiter is still there, and whether to end
// the walk. walk returns how many slots are left.
func (ks *Keyspace) walk(k PermitKeys, total int, asker string, visit func(waiter, value string) (there, end bool)) int {
	free, passed, gone := total-len(ks.Members(k.slots)), 0, true
	for gone {
		gone = false
		waiting := ks.Members(k.Queue.Order)[passed:]
		for _, m := range waiting[:min(len(waiting), max(free, 0)+1)] {
			deadline, how, value, ok := ks.registered(k.Queue, m.Member)
			there, n := ok && deadline > ks.Millis(), 0
			if there {
				end := false
				if n, _ = strconv.Atoi(how[1:]); n <= free {
					there, end = visit(m.Member, value)
				} else {
					there = m.Member == asker || ks.present(k.Queue.Marker, m.Member)
					end = there
				}
				if end {
					return free
				}
			}
			if !there {
				ks.unqueue(k.Queue, m.Member)
				gone = true
				continue
			}
			free, passed = free-n, passed+1
		}
	}
	return free
}

// servePermits tells waiters that it is their turn, as far as the slots go.
func (ks *Keyspace) servePermits(k PermitKeys, total int, asker string) {
	told := 0
	ks.walk(k, total, asker, func(waiter, value string) (there, end bool) {
		if told == 64 {
			return true, true
		}
		there = ks.tell(k.slots, k.Queue.Marker, waiter, value, ":t")
		if there {
			told++
		}
		return there, false
	})
}

// isNext reports whether there are slots for a waiter and for all waiters before it, and how
// many slots the waiters before it take.
func (ks *Keyspace) isNext(k PermitKeys, waiter string, total int) (reached bool, ahead int) {
	free := total - len(ks.Members(k.slots))
	left := ks.walk(k, total, waiter, func(other, _ string) (there, end bool) {
		reached = other == waiter
		return true, reached
	})
	return reached, free - left
}

// tooFew is the answer to a waiter that does not get n slots.
func (ks *Keyspace) tooFew(k PermitKeys, n int, free []string) any {
	rest := int64(-2)
	taken := ks.Members(k.slots)
	if i := n - len(free) - 1; i >= 0 && i < len(taken) {
		rest = max(0, taken[i].Score-ks.Millis())
	}
	return []any{rest, int64(0), []byte(strings.Join(free, ","))}
}

// Size returns the stored number of permits and the order of the Resize that set it. Each is
// zero if it is not stored.
func (ks *Keyspace) Size(k PermitKeys) (total int, order int64) {
	stored, _ := ks.text(k.Limit)
	size, resized, _ := strings.Cut(stored, " ")
	total, _ = strconv.Atoi(size)
	order, _ = strconv.ParseInt(resized, 10, 64)
	return total, order
}

// resize changes how many permits there are, and reports whether it did: not if a
// later Resize has.
func (ks *Keyspace) resize(k PermitKeys, total int, order int64) bool {
	if stored, last := ks.Size(k); last > order || last == order && stored > total {
		return false
	}
	ks.setSize(k, total, order)
	return true
}

func (ks *Keyspace) setSize(k PermitKeys, total int, order int64) {
	text := strconv.Itoa(total)
	if order > 0 {
		text += " " + strconv.FormatInt(order, 10)
	}
	ks.Store(k.Limit, &Entry{Value: text, Until: ks.Millis() + counterLife})
}

func otherSize(total int) *wire.ServerError { return wire.Server("PERMITS " + strconv.Itoa(total)) }

// counted raises the counter of a fenced semaphore and returns it. It returns zero
// for a semaphore that is not fenced.
func (ks *Keyspace) counted(k PermitKeys, proposal string) int64 {
	if proposal == "-" {
		return 0
	}
	return ks.count(k.Counter(), proposal, 16)
}

// Counter returns the key of the counter of a fenced semaphore.
func (k PermitKeys) Counter() string {
	base := strings.TrimSuffix(k.Queue.Marker, "marker")
	return base + "token:" + strings.TrimPrefix(k.Queue.Order, base+"permitqueue:")
}

func (ks *Keyspace) permit(k PermitKeys, args []string) (any, *wire.ServerError) {
	value, ttl, ticket, hold := args[0], args[1], args[2], len(args) > 7
	total, _ := strconv.Atoi(args[3])
	n, _ := strconv.Atoi(args[4])
	start, _ := strconv.Atoi(args[5])
	waiter, ask := SplitValue(value)
	size, order := ks.Size(k)
	if size != 0 && size != total {
		return nil, otherSize(size)
	}
	ks.sweepPermits(k)
	mine, old, has := ks.SlotsOf(k, waiter)
	if _, latest := SplitValue(old); ks.overtaken(k.Queue, waiter, ask) || has && latest > ask {
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
		ks.register(k.Queue, waiter, ticket, ttl, "w"+args[4], value)
	}
	var behind bool
	if ticket == "-" {
		head := ks.firstPresent(k.Queue, waiter)
		behind = head != "" && head != waiter
	} else {
		reached, ahead := ks.isNext(k, waiter, total)
		if behind = !reached; reached && ahead > 0 {
			free = ks.freeSlots(k, total, start, ahead+some)[ahead:]
		}
	}
	if hold || n > len(free) || n > total-len(ks.Members(k.slots)) || behind {
		if !hold {
			ks.servePermits(k, total, waiter)
		}
		return ks.tooFew(k, n, free), nil
	}
	mine = strings.Join(free[:n], ",")
	ks.takeSlots(k, waiter, value, mine, ttl)
	ks.unqueue(k.Queue, waiter)
	ks.resize(k, total, order)
	counter := ks.counted(k, args[6])
	ks.servePermits(k, total, "")
	return append([]any{[]byte(mine), []byte(strings.Join(free[n:], ",")), counter, order}, taken...), nil
}

func (ks *Keyspace) permitMove(k PermitKeys, args []string) (any, *wire.ServerError) {
	value, ttl, list := args[0], args[1], args[2]
	total, _ := strconv.Atoi(args[3])
	waiter, ask := SplitValue(value)
	ks.sweepPermits(k)
	mine, old, has := ks.SlotsOf(k, waiter)
	if _, latest := SplitValue(old); ks.overtaken(k.Queue, waiter, ask) || has && latest > ask {
		return nil, nil
	}
	if mine != list {
		ks.drop(k, waiter)
	}
	possible := !ks.anyTaken(k, list, waiter)
	order, _ := strconv.ParseInt(args[4], 10, 64)
	if size, last := ks.Size(k); last == 0 {
		ks.setSize(k, total, order)
	} else if !ks.resize(k, total, order) && size < total && len(args) < 7 {
		possible = false
	}
	counter := int64(0)
	if possible {
		ks.takeSlots(k, waiter, value, list, ttl)
		ks.unqueue(k.Queue, waiter)
		counter = ks.counted(k, args[5])
	} else {
		ks.drop(k, waiter)
	}
	ks.servePermits(k, total, "")
	if !possible {
		return nil, nil
	}
	return []any{[]byte(list), counter}, nil
}

// anyTaken reports whether anybody but this waiter has one of these slots.
func (ks *Keyspace) anyTaken(k PermitKeys, list, waiter string) bool {
	for slot := range strings.SplitSeq(list, ",") {
		if owner, taken := ks.hget(k.owners, slot); taken && owner != waiter {
			return true
		}
	}
	return false
}

func (ks *Keyspace) permitExtend(k PermitKeys, args []string) (any, *wire.ServerError) {
	value, ttl, list := args[0], args[1], args[2]
	total, _ := strconv.Atoi(args[3])
	waiter, _ := SplitValue(value)
	ks.sweepPermits(k)
	mine, mineValue, has := ks.SlotsOf(k, waiter)
	if has && mineValue == value && mine == list {
		ks.takeSlots(k, waiter, value, list, ttl)
		ks.expire(k.Limit, strconv.Itoa(counterLife), 1)
		if args[4] != "-" {
			ks.raise(k.Counter(), args[4])
		}
		return int64(1), nil
	}
	if has {
		ks.drop(k, waiter)
		ks.servePermits(k, total, "")
	}
	if ks.anyTaken(k, list, "") {
		return int64(-1), nil
	}
	return int64(0), nil
}

func (ks *Keyspace) permitRelease(k PermitKeys, args []string) (any, *wire.ServerError) {
	waiter, _ := SplitValue(args[0])
	ks.sweepPermits(k)
	_, _, had := ks.SlotsOf(k, waiter)
	ks.drop(k, waiter)
	ks.unqueue(k.Queue, waiter)
	if total, _ := ks.Size(k); total != 0 {
		ks.servePermits(k, total, "")
	}
	if had {
		return int64(1), nil
	}
	return int64(0), nil
}

func (ks *Keyspace) permitResize(k PermitKeys, args []string) (any, *wire.ServerError) {
	total, _ := strconv.Atoi(args[0])
	order, _ := strconv.ParseInt(args[1], 10, 64)
	if !ks.resize(k, total, order) {
		size, _ := ks.Size(k)
		return nil, otherSize(size)
	}
	ks.sweepPermits(k)
	ks.callAll(k)
	return int64(1), nil
}

// callAll notifies every waiter that it is its turn, and drops departed waiters.
func (ks *Keyspace) callAll(k PermitKeys) {
	for _, m := range slices.Clone(ks.Members(k.Queue.Order)) {
		deadline, _, value, ok := ks.registered(k.Queue, m.Member)
		if !ok || deadline <= ks.Millis() || !ks.tell(k.slots, k.Queue.Marker, m.Member, value, ":t") {
			ks.unqueue(k.Queue, m.Member)
		}
	}
}

func (ks *Keyspace) permitRaise(k PermitKeys, args []string) (any, *wire.ServerError) {
	waiter, _ := SplitValue(args[0])
	ks.sweepPermits(k)
	if mine, value, _ := ks.SlotsOf(k, waiter); value != args[0] || mine != args[1] {
		return int64(-1), nil
	}
	ks.raise(k.Counter(), args[2])
	return int64(1), nil
}
