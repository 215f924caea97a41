// Package values is what the key of a lock stores: CLIENT/NONCE/NUMBER:ASK METADATA. The
// scripts read the word before the space: what stands before its last colon is the
// waiter, and the digits behind that colon count its asks.
package values

import (
	"strconv"
	"strings"
	"time"
)

// Writes stands before the number of an acquisition in the values of writers: a
// writer has the same key as a Mutex, and Inspect distinguishes the two by this mark.
// Numbers are in small letters and digits.
const Writes = "W"

// Fenced stands before the number of an acquisition in the values of fenced locks:
// a master keeps the counter of a name when a client without a token has the lock, and
// Inspect must not show that as the holder's token. No number begins with 0.
const Fenced = "0"

// Passes stands before the number of an acquisition, behind the other marks, in the values of
// callers that do not queue: they poll, or only try. Clients whose callers queue then leave the
// lock to them now and then; see waiting.Yields.
const Passes = "P"

// Cached stands before the number of an acquisition, behind the other marks, in the values of
// locks that are Cached: masters tell their client when others ask.
const Cached = "C"

// Kept stands before the value of a lock that was released and is kept; see AtLeast. No
// client id begins with it.
const Kept = "!"

// dateMark stands behind the number of an ask, and before the milliseconds since 1970
// by the client's clock.
const dateMark = '@'

// Maker makes the values of one lock.
type Maker struct {
	Self     string  // what every value of its client begins with
	Mark     string  // stands before the number of an acquisition
	Metadata *string // nil: neither text nor the time is stored
	Clock    interface{ Now() time.Time }
}

// First returns the value of the first attempt of an acquisition. The number was never
// used before: a release that is still on its way from an earlier attempt then finds
// nothing that it may delete (S20).
func (m *Maker) First(number uint64) string {
	buf := make([]byte, 0, 64)
	buf = append(buf, m.Self...)
	buf = append(buf, m.Mark...)
	buf = strconv.AppendUint(buf, number, 36)
	buf = append(buf, ":0"...)
	return string(m.describe(buf))
}

// ID returns the beginning of all values of one acquisition.
func (m *Maker) ID(number uint64) string {
	return m.Self + m.Mark + strconv.FormatUint(number, 36)
}

// Of returns the value of the nth ask of a waiter.
func (m *Maker) Of(id string, n int) string {
	buf := make([]byte, 0, 64)
	buf = append(buf, id...)
	buf = append(buf, ':')
	buf = strconv.AppendInt(buf, int64(n), 10)
	return string(m.describe(buf))
}

// describe adds to a value what Metadata asks for.
func (m *Maker) describe(value []byte) []byte {
	if m.Metadata == nil {
		return value
	}
	value = append(value, dateMark)
	value = strconv.AppendInt(value, m.Clock.Now().UnixMilli(), 36)
	if *m.Metadata != "" {
		value = append(value, ' ')
		value = append(value, *m.Metadata...)
	}
	return value
}

// Parse takes apart a value of this library. Those of others have no parts. The time is when the
// client asked for the lock, by its clock; zero: not stored.
func Parse(value string) (client, metadata string, since time.Time) {
	word, metadata, _ := strings.Cut(strings.TrimPrefix(value, Kept), " ")
	parts := strings.Split(word, "/")
	if len(parts) != 3 {
		return "", "", time.Time{}
	}
	if _, date, dated := cutLast(parts[2], dateMark); dated {
		if ms, err := strconv.ParseInt(date, 36, 64); err == nil {
			since = time.UnixMilli(ms)
		}
	}
	return parts[0], metadata, since
}

// Ask takes apart a value into the waiter's id and the number of its ask.
func Ask(value string) (id string, n int, ok bool) {
	word, _, _ := strings.Cut(value, " ")
	id, ask, ok := cutLast(word, ':')
	if !ok {
		return "", 0, false
	}
	ask, _, _ = strings.Cut(ask, string(dateMark))
	n, err := strconv.Atoi(ask)
	return id, n, err == nil
}

// ID returns the waiter's id. The value may be another library's, by Adopt.
func ID(value string) string {
	word, _, _ := strings.Cut(value, " ")
	id, _, _ := cutLast(word, ':')
	return id
}

// IsWriter reports whether a value is that of a writer, or of a writer that has
// downgraded.
func IsWriter(value string) bool { return marked(value, Writes) }

// IsFenced reports whether a value is that of a holder with a fencing token.
func IsFenced(value string) bool { return marked(value, Fenced) }

// IsCached reports whether a value is that of a Cached lock.
func IsCached(value string) bool { return marked(value, Cached) }

func marked(value, mark string) bool {
	word, _, _ := strings.Cut(value, " ")
	parts := strings.Split(word, "/")
	return len(parts) == 3 && strings.HasPrefix(parts[2], mark)
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
