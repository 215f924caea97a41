package redlock

import (
	"strconv"
	"strings"
	"time"
)

// This file is what a lock's key stores: CLIENT/NONCE/NUMBER:ASK METADATA. The
// scripts read the word before the space: what stands before its last colon is the
// waiter, and the digits behind that colon count its asks.

// writesMark stands before the number of an acquisition in the values of writers: a
// writer has the same key as a Mutex, and Inspect distinguishes the two by this mark.
// Numbers are in small letters and digits.
const writesMark = "W"

// fencedMark stands before the number of an acquisition in the values of fenced locks:
// a master keeps the counter of a name when a client without a token has the lock, and
// Inspect must not show that as the holder's token. No number begins with 0.
const fencedMark = "0"

// dateMark stands behind the number of an ask, and before the milliseconds since 1970
// by the client's clock.
const dateMark = '@'

// value returns the value of a new attempt, which was never stored before: a
// release that is still on its way from an earlier attempt then finds nothing
// that it may delete (S20).
func (l *lock) value() string {
	c := l.client
	buf := make([]byte, 0, 64)
	buf = append(buf, c.self...)
	buf = append(buf, l.mark...)
	buf = strconv.AppendUint(buf, c.nextSeq(), 36)
	buf = append(buf, ":0"...)
	return string(l.describe(buf))
}

// nextID returns the beginning of all values of one acquisition, which was never used
// before.
func (l *lock) nextID() string {
	return l.client.self + l.mark + strconv.FormatUint(l.client.nextSeq(), 36)
}

// valueOf returns the value of the nth ask of a waiter.
func (l *lock) valueOf(id string, n int) string {
	buf := make([]byte, 0, 64)
	buf = append(buf, id...)
	buf = append(buf, ':')
	buf = strconv.AppendInt(buf, int64(n), 10)
	return string(l.describe(buf))
}

// describe adds to a value what Metadata asks for.
func (l *lock) describe(value []byte) []byte {
	if l.opt.metadata == nil {
		return value
	}
	value = append(value, dateMark)
	value = strconv.AppendInt(value, l.client.clock.Now().UnixMilli(), 36)
	if *l.opt.metadata != "" {
		value = append(value, ' ')
		value = append(value, *l.opt.metadata...)
	}
	return value
}

// ParseValue takes apart a value of this library. Those of others have no parts.
// The time is zero where none is stored.
func ParseValue(value string) (client, metadata string, since time.Time) {
	word, metadata, _ := strings.Cut(value, " ")
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

// parseAsk takes apart a value into the waiter's id and the number of its ask.
func parseAsk(value string) (id string, n int, ok bool) {
	word, _, _ := strings.Cut(value, " ")
	id, ask, ok := cutLast(word, ':')
	if !ok {
		return "", 0, false
	}
	ask, _, _ = strings.Cut(ask, string(dateMark))
	n, err := strconv.Atoi(ask)
	return id, n, err == nil
}

// idOf returns the waiter's id. The value may be another library's, by Adopt.
func idOf(value string) string {
	word, _, _ := strings.Cut(value, " ")
	id, _, _ := cutLast(word, ':')
	return id
}

// isWriter reports whether a value is that of a writer, or of a writer that has
// downgraded.
func isWriter(value string) bool {
	word, _, _ := strings.Cut(value, " ")
	parts := strings.Split(word, "/")
	return len(parts) == 3 && strings.HasPrefix(parts[2], writesMark)
}

// isFenced reports whether a value is that of a holder with a fencing token.
func isFenced(value string) bool {
	word, _, _ := strings.Cut(value, " ")
	parts := strings.Split(word, "/")
	return len(parts) == 3 && strings.HasPrefix(parts[2], fencedMark)
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
