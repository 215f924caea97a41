package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"
)

// Reader makes replies of the bytes that a master sends: bytes in, replies out,
// without I/O. What comes from the network may be anything, and one master must
// not hurt the client (L23).
//
// Invariant: a reader keeps at most some multiple of the bytes that it was fed, and
// at most some multiple of the limits; never of a length that was only claimed.
type Reader struct {
	in       []byte  // fed; what stands before next has been read
	at       int     // where the next item begins
	scanned  int     // how far the end of its line was looked for
	bulk     int     // the length of the bulk string that comes next; -1: a line does
	open     []array // incomplete, the outermost first
	recent   [2]any  // the last replies that were bulk strings: the same marker, and the same role, come again and again
	size     int     // bytes of the reply so far
	elements int     // that the arrays of the reply have, or claim

	clockNext bool // the next reply is one to TIME
	clock     ClockReading
	pair      [2]any // the elements of that reply, which are kept in clock
}

// ClockReading is the answer to TIME, which comes with every batch of votes and would
// cost four allocations as an array.
type ClockReading struct {
	Numbers [2]int64 // seconds, and microseconds
	Read    int      // how many of them there were
}

// Time returns what the clock read. Not ok: the reply was something else.
func (c *ClockReading) Time() (at time.Time, ok bool) {
	return time.Unix(c.Numbers[0], c.Numbers[1]*1000).UTC(), c.Read == len(c.Numbers)
}

// AwaitClock has the reader return a *clockReading if the next reply is a pair, and
// nothing but that is expected. It is good until the reply after that.
func (r *Reader) AwaitClock() { r.clockNext, r.clock = true, ClockReading{} }

// isClock reports whether the reply that is being read is that pair.
func (r *Reader) isClock() bool {
	return r.clockNext && len(r.open) == 1 && cap(r.open[0].values) == len(r.pair)
}

// readClock takes an element of the pair.
func (r *Reader) readClock(text []byte) {
	if n, ok := parseInt(text); ok {
		r.clock.Numbers[len(r.open[0].values)] = n
		r.clock.Read++
	}
}

// array is an array of which elements are missing.
type array struct {
	values  []any
	missing int
}

// These are the limits of a reply. The longest that our commands can get are INFO and
// ROLE of a master with hundreds of replicas, and a value that another program stored
// under the name of a lock.
const (
	maxLine     = 64 << 10
	maxBulk     = 1 << 20
	maxReply    = 4 << 20
	maxElements = 64 << 10 // of all arrays of the reply
	maxDepth    = 8
)

// keepInput bounds the memory that a reader keeps between replies.
const keepInput = 16 << 10

// ErrUnreadable is a reply that is not what a Redis server sends to us.
var ErrUnreadable = errors.New("unreadable reply")

func Unreadable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnreadable, fmt.Sprintf(format, args...))
}

func NewReader() *Reader { return &Reader{bulk: -1} }

// Feed takes the next bytes, of which it keeps a copy.
func (r *Reader) Feed(b []byte) {
	if r.at > 0 {
		r.in = r.in[:copy(r.in, r.in[r.at:])]
		r.scanned -= r.at
		r.at = 0
	}
	if len(r.in) == 0 && cap(r.in) > keepInput {
		r.in = nil
	}
	r.in = append(r.in, b...)
}

// Empty reports whether everything that was fed has been read.
func (r *Reader) Empty() bool {
	return r.at == len(r.in) && r.bulk < 0 && len(r.open) == 0
}

// Next returns the next reply: int64, string for a status, *ServerError, []byte
// for a bulk string, nil, or []any of these. Not ok: more bytes are needed. An
// error is final.
func (r *Reader) Next() (value any, ok bool, err error) {
	for {
		begun := r.at
		value, state, err := r.item()
		if err != nil {
			return nil, false, err
		}
		if r.size += r.at - begun; r.size > maxReply {
			return nil, false, Unreadable("more than %d bytes", maxReply)
		}
		switch state {
		case itemMissing:
			return nil, false, nil
		case itemWhole:
			if value, ok = r.put(value); ok {
				r.size, r.elements, r.clockNext = 0, 0, false
				return value, true, nil
			}
		}
	}
}

// put makes a value the next element of the innermost open array, and returns
// the reply if that completes it.
func (r *Reader) put(value any) (reply any, ok bool) {
	for len(r.open) > 0 {
		last := len(r.open) - 1
		a := &r.open[last]
		clock := r.isClock()
		a.values = append(a.values, value)
		if a.missing--; a.missing > 0 {
			return nil, false
		}
		if clock {
			value = &r.clock
		} else {
			value = a.values
		}
		*a = array{}
		r.open = r.open[:last]
	}
	return value, true
}

// itemState is what reading an item came to.
type itemState int

const (
	itemMissing itemState = iota // it has not come as a whole
	itemBegun                    // the head of an array or a bulk string was read
	itemWhole
)

// item reads a line or the text of a bulk string.
func (r *Reader) item() (value any, state itemState, err error) {
	if r.bulk >= 0 {
		return r.text()
	}
	line, ok, err := r.line()
	if !ok || err != nil {
		return nil, itemMissing, err
	}
	if len(line) == 0 {
		return nil, itemMissing, Unreadable("an empty line")
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return status(rest), itemWhole, nil
	case '-':
		return Server(string(rest)), itemWhole, nil
	case ':':
		n, ok := parseInt(rest)
		if !ok {
			return nil, itemMissing, Unreadable("integer %.40q", rest)
		}
		return n, itemWhole, nil
	case '$':
		return r.beginBulk(rest)
	case '*':
		return r.beginArray(rest)
	}
	return nil, itemMissing, Unreadable("%.40q", line)
}

// Text reads the bulk string whose length is known.
func (r *Reader) text() (value any, state itemState, err error) {
	rest := r.in[r.at:]
	if len(rest) < r.bulk+2 {
		return nil, itemMissing, nil
	}
	if rest[r.bulk] != '\r' || rest[r.bulk+1] != '\n' {
		return nil, itemMissing, Unreadable("a bulk string of other than %d bytes", r.bulk)
	}
	text := rest[:r.bulk]
	r.at += r.bulk + 2
	r.bulk = -1
	if r.isClock() {
		r.readClock(text)
		return nil, itemWhole, nil
	}
	if len(r.open) > 0 {
		return bytes.Clone(text), itemWhole, nil
	}
	for _, value := range r.recent {
		if recent, ok := value.([]byte); ok && bytes.Equal(recent, text) {
			return value, itemWhole, nil
		}
	}
	r.recent[1] = r.recent[0]
	r.recent[0] = append(make([]byte, 0, len(text)), text...)
	return r.recent[0], itemWhole, nil
}

// line returns the next line without its end.
func (r *Reader) line() (line []byte, ok bool, err error) {
	r.scanned = max(r.scanned, r.at)
	end := bytes.IndexByte(r.in[r.scanned:], '\n')
	if end < 0 {
		r.scanned = len(r.in)
		if r.scanned-r.at > maxLine {
			return nil, false, tooLong(r.in[r.at:])
		}
		return nil, false, nil
	}
	line = r.in[r.at : r.scanned+end]
	if len(line) > maxLine {
		return nil, false, tooLong(line)
	}
	r.at += len(line) + 1
	last := len(line) - 1
	if last < 0 || line[last] != '\r' {
		return nil, false, Unreadable("%.40q ends without a carriage return", line)
	}
	return line[:last], true, nil
}

func tooLong(line []byte) error {
	return Unreadable("%.40q is a line of more than %d bytes", line[:40], maxLine)
}

func (r *Reader) beginBulk(length []byte) (value any, state itemState, err error) {
	n, ok := parseLength(length)
	switch {
	case !ok:
		return nil, itemMissing, Unreadable("bulk string of length %.40q", length)
	case n < 0:
		return nil, itemWhole, nil
	case n > maxBulk:
		return nil, itemMissing, Unreadable("bulk string of length %d: more than %d", n, maxBulk)
	}
	r.bulk = int(n)
	return nil, itemBegun, nil
}

func (r *Reader) beginArray(length []byte) (value any, state itemState, err error) {
	n, ok := parseLength(length)
	switch {
	case !ok:
		return nil, itemMissing, Unreadable("array of length %.40q", length)
	case n < 0:
		return nil, itemWhole, nil
	case n == 0:
		return []any{}, itemWhole, nil
	case n > int64(maxElements-r.elements):
		return nil, itemMissing, Unreadable("array of length %d: more than %d elements", n, maxElements)
	case len(r.open) == maxDepth:
		return nil, itemMissing, Unreadable("arrays in each other, more than %d deep", maxDepth)
	}
	r.elements += int(n)
	if r.clockNext && len(r.open) == 0 && n == int64(len(r.pair)) {
		r.open = append(r.open, array{values: r.pair[:0], missing: int(n)})
		return nil, itemBegun, nil
	}
	r.open = append(r.open, array{values: make([]any, 0, min(n, MaxFold)), missing: int(n)})
	return nil, itemBegun, nil
}

// status returns a status reply, the usual ones without allocating.
func status(b []byte) any {
	switch string(b) {
	case "OK":
		return statusOK
	case "PONG":
		return statusPong
	}
	return string(b)
}

var statusOK, statusPong any = "OK", "PONG"

// parseLength reads a length: digits, or -1 for nil.
func parseLength(b []byte) (n int64, ok bool) {
	if string(b) == "-1" {
		return -1, true
	}
	n, ok = parseInt(b)
	return n, ok && b[0] != '-'
}

// parseInt reads an integer.
func parseInt(b []byte) (n int64, ok bool) {
	digits, negative := bytes.CutPrefix(b, []byte{'-'})
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	var u uint64 // holds any 19 digits
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		u = u*10 + uint64(d-'0')
	}
	switch {
	case negative && u <= -math.MinInt64:
		return -int64(u), true
	case negative || u > math.MaxInt64:
		return 0, false
	}
	return int64(u), true
}
