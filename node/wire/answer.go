package wire

import (
	"strconv"
	"strings"
	"time"
)

// This file reads the replies to the commands that the other files build. No other file
// knows the layout of a reply.
//
// Each function reports whether the reply is an answer to such a command at all. Any other
// reply may come from anything but the master, and must not count as a vote.

// KeyState is what a master answers to Extend, Release, Raise and the like: whose value
// the key has.
type KeyState int8

const (
	Ours   KeyState = 1  // and the command did its work
	Absent KeyState = 0  // the key does not exist
	Theirs KeyState = -1 // the key has another value
)

// IsWanted reports whether a lock is ours and others wait for it, by the answer to ExtendCached.
func IsWanted(r Reply) bool { return r.Err == nil && r.Value == "WANTED" }

// KeyStateOf reads a KeyState.
func KeyStateOf(r Reply) (s KeyState, ok bool) {
	n, isNumber := r.Value.(int64)
	switch {
	case IsWanted(r):
		return Ours, true
	case r.Err != nil || !isNumber || n < -1 || n > 1:
		return 0, false
	}
	return KeyState(n), true
}

// Granted reports whether a master granted a lock without a counter.
func Granted(r Reply) bool { return r.Value == "OK" }

// NotSet reports whether a master refused SET NX.
func NotSet(r Reply) bool { return r.Err == nil && r.Value == nil }

// CounterOf reads the counter from the grant of a fenced lock; zero from any other reply.
func CounterOf(r Reply) uint64 { return uint64(max(integer(r.Value), 0)) }

// Refusal is what a master says that does not grant a lock.
type Refusal struct {
	Left    time.Duration // for how long another client has the lock; negative: without an end
	Foreign bool          // that is a client of another library
	Passes  bool          // that client does not queue: it is of another library, polls, or only tries
	Ticket  int64         // with which FairAsk has queued us; otherwise zero

	// Of a Multi: the number of the lock that we lack, from zero on, or -1; and its
	// holder: a waiter, a value of another library, or none.
	Lock   int
	Holder string

	Free Slots // of a semaphore
}

// RefusalOf reads the refusal of a lock of any kind: all of them begin alike.
func RefusalOf(r Reply) (Refusal, bool) {
	f := fields(r)
	if r.Err != nil || len(f) < 2 {
		return Refusal{}, false
	}
	return Refusal{Left: ofMillis(f[0]), Foreign: integer(f[1]) == 1, Passes: integer(f[1]) > 0}, true
}

// Refused reports whether a master refused a lock of any kind.
func Refused(r Reply) bool {
	_, refused := RefusalOf(r)
	return refused || NotSet(r)
}

// refusal reads a refusal that has n fields.
func refusal(r Reply, n int) (Refusal, []any, bool) {
	if f := fields(r); len(f) == n {
		said, ok := RefusalOf(r)
		return said, f, ok
	}
	return Refusal{}, nil, false
}

// AskRefusal reads the refusal of Ask, and of ReadWrite's Read and Write.
func AskRefusal(r Reply) (Refusal, bool) {
	said, _, ok := refusal(r, 2)
	return said, ok
}

// FencedRefusal reads the refusal of FencedAcquire and FencedAsk.
func FencedRefusal(r Reply) (Refusal, bool) {
	said, _, ok := refusal(r, 3)
	return said, ok
}

// FairRefusal reads the refusal of FairAsk and FencedFairAsk.
func FairRefusal(r Reply) (Refusal, bool) {
	said, f, ok := refusal(r, 4)
	if ok {
		said.Ticket = integer(f[3])
	}
	return said, ok
}

// ManyRefusal reads the refusal of Many.Take, for so many locks.
func ManyRefusal(r Reply, locks int) (Refusal, bool) {
	said, f, ok := refusal(r, 5)
	if !ok {
		return Refusal{}, false
	}
	said.Lock, said.Holder = -1, stringOf(f[4])
	if n := integer(f[3]); n >= 1 && n <= int64(locks) {
		said.Lock = int(n) - 1
	}
	return said, true
}

// Slots are permits of a semaphore, in decimal with commas between them.
type Slots string

// SlotsOf writes slots.
func SlotsOf(numbers []int) Slots {
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = strconv.Itoa(n)
	}
	return Slots(strings.Join(names, ","))
}

// Numbers reads slots. It leaves out everything that is not a number.
func (s Slots) Numbers() []int {
	if s == "" {
		return nil
	}
	var numbers []int
	for name := range strings.SplitSeq(string(s), ",") {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// PermitGrant is what a master answers that gave us slots. Its methods read the reply, which
// may have thousands of slots, only as far as they must. The zero PermitGrant is that of a
// master that gave us none.
type PermitGrant struct{ fields []any }

// PermitGrantOf reads the grant of Permits.Take.
func PermitGrantOf(r Reply) (g PermitGrant, ok bool) {
	f := fields(r)
	if r.Err != nil || len(f) != 4 && len(f) != 5 {
		return PermitGrant{}, false
	}
	return PermitGrant{f}, true
}

// PermitMoveOf reads the answer to Permits.Move and Permits.Repair. No slots, as in the
// reply nil: they were refused.
func PermitMoveOf(r Reply) (g PermitGrant, ok bool) {
	f := fields(r)
	if r.Err != nil || r.Value != nil && len(f) != 2 {
		return PermitGrant{}, false
	}
	return PermitGrant{f}, true
}

func (g PermitGrant) field(i int) any {
	if i < len(g.fields) {
		return g.fields[i]
	}
	return nil
}

// Slots returns the slots that are ours.
func (g PermitGrant) Slots() Slots { return slotsOf(g.field(0)) }

// Gives reports whether these slots are ours, and no others.
func (g PermitGrant) Gives(slots Slots) bool {
	given, _ := g.field(0).([]byte)
	return string(given) == string(slots)
}

// Free returns the slots that are free. The answer to a move does not tell.
func (g PermitGrant) Free() Slots {
	if len(g.fields) < 4 {
		return ""
	}
	return slotsOf(g.fields[1])
}

// Counter returns the counter of a fenced semaphore; zero: the grant has none.
func (g PermitGrant) Counter() uint64 {
	at := 2
	if len(g.fields) == 2 {
		at = 1
	}
	return uint64(max(integer(g.field(at)), 0))
}

// Resize returns the order of the Resize by which there are so many permits.
func (g PermitGrant) Resize() int64 { return integer(g.field(3)) }

// Taken returns the slots that are ours or others', if there was a Resize.
func (g PermitGrant) Taken() Slots { return slotsOf(g.field(4)) }

// PermitRefusal reads the refusal of Permits.Take.
func PermitRefusal(r Reply) (Refusal, bool) {
	said, f, ok := refusal(r, 3)
	if ok {
		said.Free = slotsOf(f[2])
	}
	return said, ok
}

func slotsOf(v any) Slots { return Slots(stringOf(v)) }

// Leading is the answer to Leadership.Leader.
type Leading struct {
	Value   string        // of the lease; empty: no leader
	Left    time.Duration // of the lease
	Counter uint64        // the fencing counter
	Number  int64         // of what the leader said last; zero: nothing
	Says    string
}

// LeadingOf reads a Leading. A master that has the lock and no counter has lost it, and does not know
// who leads with which token.
func LeadingOf(r Reply) (l Leading, ok bool) {
	f := fields(r)
	if r.Err != nil || len(f) != 5 {
		return Leading{}, false
	}
	counter, ok := f[2].(int64)
	l = Leading{Value: stringOf(f[0]), Left: ofMillis(f[1]), Counter: uint64(max(counter, 0)), Says: stringOf(f[4])}
	l.Number, _ = strconv.ParseInt(stringOf(f[3]), 10, 64)
	return l, ok && (l.Value == "" || l.Counter > 0)
}

// ProclaimedOf reads the answer to Leadership.Proclaim. higher is the number of what the
// leader has said before, if it is above ours.
func ProclaimedOf(r Reply) (s KeyState, higher int64, ok bool) {
	if s, ok := KeyStateOf(r); ok {
		return s, 0, true
	}
	higher, err := strconv.ParseInt(stringOf(r.Value), 10, 64)
	return Theirs, higher, r.Err == nil && err == nil
}

// ArrivalsOf reads the answer to Latch.Read. whole is described at Whole.
func ArrivalsOf(r Reply) (ids []string, whole, ok bool) {
	members, ok := r.Value.([]any)
	if r.Err != nil || !ok {
		return nil, false, false
	}
	for _, m := range members {
		if id := stringOf(m); id == Whole {
			whole = true
		} else {
			ids = append(ids, id)
		}
	}
	return ids, whole, true
}

// fields returns the elements of a reply, if it is an array.
func fields(r Reply) []any {
	all, _ := r.Value.([]any)
	return all
}
