package wire

import (
	"strconv"
	"strings"
	"time"
)

// Inspect asks for all that is known of the lock of that name, of whatever kind,
// among the keys with the given prefix. See Inspected. Of many readers and holders of
// permits the answer is a page: with ended, the page that begins where the page before
// ended, and otherwise the first.
func Inspect(prefix, name string, ended ...string) *Command {
	q, rw, p := QueueOf(prefix, name), ReadWriteOf(prefix, name).keys, PermitsOf(prefix, name).keys
	return &Command{Op: OpRead, Script: ScriptInspect, Keys: []string{
		prefix + name, q.Counter(), q.Order, q.Entries, rw[6], rw[4], rw[5], p[0], p[1], p[5], p[6], p[2], p[4],
	}, Args: ended}
}

// Inspected is what a master knows of a lock.
type Inspected struct {
	Value     string        // of the holder that has it alone; empty: none
	Remaining time.Duration // negative: it has no expiry
	Counter   uint64        // of fencing tokens; 0: none
	Waiting   int           // how many wait
	ReadWrite bool          // a client waits to read or to write
	Permits   int           // how many there are; 0: unknown
	Order     int64         // of the Resize that said so
	Taken     Slots         // the slots that are held, with commas
	Queue     []Queued      // the first waiters, in order
	Shares    []Share       // readers, or holders of permits; if renewed meanwhile, perhaps twice
	Ended     string        // where the page ends; empty: it is the last
}

// Queued is one waiter.
type Queued struct {
	Ticket int64
	How    string // it is served; see queue.lua
	Value  string // of its last ask
}

// Share is a reader, or a holder of permits.
type Share struct {
	Value     string
	Slots     Slots // none: a reader
	Remaining time.Duration
}

// InspectedOf reads the reply to Inspect. A master may answer only the first two values,
// about the holder.
func InspectedOf(r Reply) (seen Inspected, ok bool) {
	f, _ := r.Value.([]any)
	if r.Err != nil || len(f) < 2 {
		return Inspected{}, false
	}
	if seen.Value = stringOf(f[0]); seen.Value != "" {
		seen.Remaining = ofMillis(f[1])
	}
	if len(f) < 8 {
		return seen, true
	}
	seen.Counter = uint64(max(integer(f[2]), 0))
	seen.Waiting = int(integer(f[3]))
	seen.ReadWrite = integer(f[4]) == 1
	seen.Permits, seen.Order = sizeOf(stringOf(f[5]))
	seen.Taken = slotsOf(f[6])
	seen.Queue = queueOf(f[7])
	if len(f) > 8 {
		seen.Ended = stringOf(f[8])
		f = f[1:]
	}
	for f = f[8:]; len(f) >= 3; f = f[3:] {
		seen.Shares = append(seen.Shares, Share{stringOf(f[0]), slotsOf(f[1]), ofMillis(f[2])})
	}
	return seen, true
}

// queueOf reads the waiters.
func queueOf(v any) (queue []Queued) {
	f, _ := v.([]any)
	for ; len(f) >= 2; f = f[2:] {
		ticket, _ := strconv.ParseFloat(stringOf(f[0]), 64)
		how, value, _ := strings.Cut(stringOf(f[1]), " ")
		queue = append(queue, Queued{int64(ticket), how, value})
	}
	return queue
}

// sizeOf reads how many permits a semaphore has, and the order of the Resize.
func sizeOf(text string) (permits int, order int64) {
	size, resized, _ := strings.Cut(text, " ")
	permits, _ = strconv.Atoi(size)
	order, _ = strconv.ParseInt(resized, 10, 64)
	return permits, order
}

func stringOf(v any) string {
	b, _ := v.([]byte)
	return string(b)
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}

func ofMillis(v any) time.Duration { return time.Duration(integer(v)) * time.Millisecond }
