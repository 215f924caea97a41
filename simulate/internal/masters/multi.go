package masters

import (
	"slices"
	"strconv"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file models multi.lua and the scripts of a Multi: several locks that are taken as
// one.

// several are the locks of a Multi, with their keys.
type several []struct {
	lock  string
	queue QueueKeys
}

// multi adapts a function on the locks of a Multi to a script.
func multi(f func(ks *Keyspace, all several, args []string) any) func(*Keyspace, []string, []string) (any, *wire.ServerError) {
	return func(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
		n := (len(keys) - 1) / 3
		all := make(several, n)
		for i := range all {
			all[i].lock, all[i].queue = keys[i], QueueKeys{keys[n+i], keys[2*n+i], keys[3*n]}
		}
		return f(ks, all, args), nil
	}
}

// holders returns the value of each lock, empty for a lock without a value. As with MGET, a key
// that does not hold a string counts as a lock without a value.
func (ks *Keyspace) holders(all several) []string {
	held := make([]string, len(all))
	for i, l := range all {
		held[i], _ = ks.text(l.lock)
	}
	return held
}

// highest returns the highest of all counters.
func (ks *Keyspace) highest(all several, how string) int64 {
	c := int64(0)
	if how != "-" {
		for _, l := range all {
			c = max(c, ks.Counter(l.queue.counter()))
		}
	}
	return c
}

// raiseAll moves all counters up to the token, and reports whether any was below.
func (ks *Keyspace) raiseAll(all several, token string) bool {
	raised := false
	for _, l := range all {
		raised = ks.raise(l.queue.counter(), token) || raised
	}
	return raised
}

// lacks is the answer to a refused caller: it lacks lock i, which holder has.
func (ks *Keyspace) lacks(all several, i int, holder, how string) any {
	passes := int64(0)
	who, _ := SplitValue(holder)
	if holder != "" {
		passes = queues(holder)
	}
	return []any{ks.left(all[i].lock, all[i].queue), passes, ks.highest(all, how), int64(i + 1), []byte(who)}
}

func (ks *Keyspace) multiAsk(all several, args []string) any {
	value, ttl, ticket, how, hold := args[0], args[1], args[2], args[3], len(args) > 5
	place, _ := strconv.Atoi(args[4])
	waiter, n := SplitValue(value)
	held := ks.holders(all)
	has := 0
	for i, l := range all {
		theirs, ask := SplitValue(held[i])
		if ks.overtaken(l.queue, waiter, n) || theirs == waiter && ask > n {
			return ks.lacks(all, i, held[i], how)
		}
		if held[i] == value {
			has++
		}
	}
	if has == len(all) && hold {
		return ks.lacks(all, 0, held[0], how)
	} else if has == len(all) {
		return ks.hasAll(all, how)
	}
	freed := make([]bool, len(all))
	for i, l := range all {
		if theirs, _ := SplitValue(held[i]); theirs == waiter {
			ks.remove(l.lock)
			held[i], freed[i] = "", true
		}
	}
	lacking, lowest := ks.lacking(all, held, waiter, ticket, place)
	if ks.Variant == GrantsFree {
		return ks.takeFree(all, held, value, ttl, how)
	}
	switch {
	case place > 0:
		lacking = place - 1
	case lacking < 0 && !hold:
		ks.takeAll(all, waiter, value, ttl, how)
		return ks.hasAll(all, how)
	}
	lacking = max(lacking, 0)
	waits := make([]string, len(all)) // the waiter, where it waits
	for i, l := range all {
		if ticket != "-" && (i == lacking || place == wire.WaitForEach && lowest) {
			waits[i] = waiter
			ks.register(l.queue, waiter, ticket, ttl, "w", value)
		} else {
			ks.unqueue(l.queue, waiter)
		}
	}
	for i, l := range all {
		if !hold && held[i] == "" && (freed[i] || ticket != "-") {
			ks.give(l.lock, l.queue, waits[i])
		}
	}
	if ticket != "-" {
		ks.want(all[lacking].lock, all[lacking].queue, held[lacking])
	}
	return ks.lacks(all, lacking, held[lacking], how)
}

// lacking returns the first lock that has a holder, or else the first lock with another waiter
// in front of this one; negative: no lock. lowest reports that no lock has such a waiter; it is
// of use only with wire.WaitForEach.
func (ks *Keyspace) lacking(all several, held []string, waiter, ticket string, place int) (lacking int, lowest bool) {
	lacking, lowest = slices.IndexFunc(held, func(holder string) bool { return holder != "" }), true
	if lacking >= 0 && place != wire.WaitForEach {
		return lacking, lowest
	}
	rank, _ := strconv.ParseInt(ticket, 10, 64)
	for i := range all {
		if ticket == "-" || !ks.goesFirst(all[i].queue, rank, waiter) {
			continue
		}
		if lowest = false; lacking < 0 {
			lacking = i
		}
		if place != wire.WaitForEach {
			break
		}
	}
	return lacking, lowest
}

func (ks *Keyspace) takeAll(all several, waiter, value, ttl, how string) {
	for _, l := range all {
		ks.set(l.lock, []string{value, "PX", ttl})
		ks.unqueue(l.queue, waiter)
	}
	if how != "-" {
		ks.raiseAll(all, strconv.FormatInt(ks.above(ks.highest(all, how), how, 1), 10))
	}
}

// takeFree is what the variant grantsFree does instead of takeAll.
func (ks *Keyspace) takeFree(all several, held []string, value, ttl, how string) any {
	for i, l := range all {
		if held[i] == "" {
			ks.set(l.lock, []string{value, "PX", ttl})
		}
	}
	return ks.hasAll(all, how)
}

func (ks *Keyspace) hasAll(all several, how string) any {
	if how == "-" {
		return "OK"
	}
	return ks.highest(all, how)
}

// goesFirst reports whether another waiter of a lock comes before this one.
func (ks *Keyspace) goesFirst(q QueueKeys, ticket int64, waiter string) bool {
	head := ks.firstPresent(q, waiter)
	at, _ := ks.Score(q.Order, head)
	return head != "" && head != waiter && before(at, head, ticket, waiter)
}

func (ks *Keyspace) multiExtend(all several, args []string) any {
	answer := int64(1)
	for i, holder := range ks.holders(all) {
		switch holder {
		case args[0]:
			ks.lengthen(all[i].lock, args[1])
		case "":
			answer = min(answer, 0)
		default:
			answer = -1
		}
		if holder == args[0] && ks.Variant == ExtendsAny {
			return int64(1)
		}
	}
	if answer == 1 && args[2] != "-" {
		ks.raiseAll(all, args[2])
	}
	return answer
}

func (ks *Keyspace) multiRaise(all several, args []string) any {
	for _, holder := range ks.holders(all) {
		if holder != args[0] {
			return int64(-1)
		}
	}
	if ks.raiseAll(all, args[1]) {
		return int64(1)
	}
	return int64(0)
}

func (ks *Keyspace) multiRepair(all several, args []string) any {
	for _, holder := range ks.holders(all) {
		if holder != "" && holder != args[0] {
			return nil
		}
	}
	for _, l := range all {
		ks.set(l.lock, []string{args[0], "NX", "PX", args[1]})
	}
	if args[2] != "-" {
		ks.raiseAll(all, args[2])
	}
	return "OK"
}

func (ks *Keyspace) multiRelease(all several, args []string) any {
	waiter, _ := SplitValue(args[0])
	answer := int64(1)
	var ours []string
	for i, holder := range ks.holders(all) {
		theirs, _ := SplitValue(holder)
		switch {
		case holder == "":
			answer = min(answer, 0)
		case theirs == waiter:
			ours = append(ours, all[i].lock)
		default:
			answer = -1
		}
	}
	if len(ours) == len(all) && args[1] != "-" {
		ks.raiseAll(all, args[1])
	}
	for _, lock := range ours {
		ks.remove(lock)
	}
	for _, l := range all {
		if ks.Find(l.queue.Order) == nil {
			continue
		}
		ks.unqueue(l.queue, waiter)
		if ks.Find(l.lock) == nil {
			ks.pass(l.lock, l.queue, len(args) > 2)
		}
	}
	return answer
}
