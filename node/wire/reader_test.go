package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// readAll feeds b in pieces of the given length and returns the replies, and
// what ended them: an error, or nil when bytes were missing.
func readAll(b []byte, piece int) (replies []any, err error) {
	r := NewReader()
	for part := range slices.Chunk(b, piece) {
		r.Feed(part)
		for {
			v, ok, err := r.Next()
			if err != nil {
				return replies, err
			}
			if !ok {
				break
			}
			replies = append(replies, v)
		}
	}
	return replies, nil
}

func TestReader_reads_every_kind_of_reply_in_pieces_of_any_size(t *testing.T) {
	const in = "+OK\r\n+PONG\r\n+\r\n-OOM no memory\r\n:0\r\n:-9223372036854775808\r\n:9223372036854775807\r\n" +
		"$5\r\nhe\r\no\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n-ERR inside\r\n*1\r\n*1\r\n*1\r\n+deep\r\n"
	want := []any{
		"OK", "PONG", "", Server("OOM no memory"), int64(0), int64(-1 << 63), int64(1<<63 - 1),
		[]byte("he\r\no"), []byte{}, nil, nil, []any{},
		[]any{int64(1), []any{[]byte("a"), []any{}}, Server("ERR inside")},
		[]any{[]any{[]any{"deep"}}},
	}
	for piece := 1; piece <= len(in); piece++ {
		got, err := readAll([]byte(in), piece)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("in pieces of %d: %#v, %v", piece, got, err)
		}
	}
}

// L23: a claim costs nothing, and what is too much is refused as soon as that is
// known.
func TestL23_reader_has_limits(t *testing.T) {
	for _, c := range []struct{ name, in, says string }{
		{"array longer than memory", "*2147483647\r\n", "array of length 2147483647: more than 65536 elements"},
		{"array longer than a number", "*100000000000\r\n", "array of length 100000000000"},
		{"array longer than 64 bits", "*18446744073709551617\r\n", `array of length "18446744073709551617"`},
		{"bulk string longer than memory", "$1099511627776\r\n", "bulk string of length 1099511627776: more than 1048576"},
		{"bulk string of 2 GB", "$2147483647\r\n", "bulk string of length 2147483647"},
		{"negative zero", "$-0\r\n", `bulk string of length "-0"`},
		{"negative length", "$-2\r\n", `bulk string of length "-2"`},
		{"nested without end", strings.Repeat("*1\r\n", 100), "more than 8 deep"},
		{"nested and wide", strings.Repeat("*60000\r\n", 2), "more than 65536 elements"},
		{"line without end", strings.Repeat("x", maxLine+2), "is a line of more than 65536 bytes"},
		{"line with a late end", "+" + strings.Repeat("x", maxLine) + "\r\n", "is a line of more than 65536 bytes"},
		{"many large strings", "*65536\r\n" + strings.Repeat("$1048576\r\n"+strings.Repeat("x", maxBulk)+"\r\n", 5), "more than 4194304 bytes"},
		{"large integer", ":9223372036854775808\r\n", `integer "9223372036854775808"`},
		{"no integer", ":1e3\r\n", `integer "1e3"`},
		{"no line end", "+OK\n", `"+OK" ends without a carriage return`},
		{"longer than it says", "$3\r\nabcde\r\n", "a bulk string of other than 3 bytes"},
		{"map of RESP3", "%1\r\n", `"%1"`},
		{"control characters", "\x1b[2J\u202e\r\n", `"\x1b[2J\u202e"`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readAll([]byte(c.in), 4<<10)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", c.name, err, c.says)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 8*uint64(len(c.in))+64<<10 {
			t.Errorf("%s: %d bytes allocated for %d that came", c.name, used, len(c.in))
		}
	}
}

func TestReader_keeps_little_after_a_large_reply(t *testing.T) {
	r := NewReader()
	r.Feed([]byte("$1000000\r\n" + strings.Repeat("x", 1_000_000) + "\r\n"))
	if _, ok, err := r.Next(); !ok || err != nil {
		t.Fatal(err)
	}
	r.Feed([]byte("+OK\r\n"))
	if cap(r.in) > keepInput {
		t.Errorf("keeps %d bytes", cap(r.in))
	}
}

func TestReader_allocates_nothing_for_the_usual_replies(t *testing.T) {
	r := NewReader()
	in := []byte("+OK\r\n:1\r\n$-1\r\n")
	if n := testing.AllocsPerRun(1000, func() {
		r.Feed(in)
		for range 3 {
			r.Next()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// incoming is a connection from which redigo reads.
type incoming struct {
	net.Conn
	io.Reader
}

func (c incoming) Read(b []byte) (int, error)      { return c.Reader.Read(b) }
func (c incoming) SetReadDeadline(time.Time) error { return nil }
func (c incoming) Close() error                    { return nil }

// byRedigosReader returns what redigo reads, or false if it does not like it.
func byRedigosReader(b []byte) (replies []any, sound bool) {
	defer func() { sound = sound && recover() == nil }()
	c := redis.NewConn(incoming{Reader: bytes.NewReader(b)}, 0, 0)
	for {
		v, err := c.Receive()
		refusal, refused := err.(redis.Error)
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return replies, true
		case refused:
			replies = append(replies, refusal)
		case err != nil:
			return replies, false
		default:
			replies = append(replies, v)
		}
	}
}

// asRedigo renders a reply so that it can be compared with redigo's.
func asRedigo(v any) any {
	switch v := v.(type) {
	case *ServerError:
		return redis.Error(v.Message)
	case []any:
		values := make([]any, len(v))
		for i := range v {
			values[i] = asRedigo(v[i])
		}
		return values
	}
	return v
}

// claimsMuch reports whether redigo would allocate what b only claims, or read
// an integer that has no room.
func claimsMuch(b []byte) bool {
	digits := 0
	for _, d := range b {
		if digits++; d < '0' || d > '9' {
			digits = 0
		}
		if digits > 4 {
			return true
		}
	}
	return bytes.Count(b, []byte("*")) > maxDepth
}

func seedReader(f *testing.F) {
	for _, in := range []string{
		"+OK\r\n:1\r\n$-1\r\n", "*2\r\n$5\r\nhello\r\n*-1\r\n", "-NOSCRIPT No matching script\r\n", "$0\r\n\r\n", "*0\r\n",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "*1\r\n*1\r\n*1\r\n+x\r\n", ":-0\r\n:007\r\n", "+half", "$3\r\nab", "*2\r\n:1\r\n",
		"hello\r\n", "\r\n", ":\r\n", "+OK\n", "$abc\r\n", "%1\r\n", "*2147483647\r\n", "$1099511627776\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
	} {
		f.Add([]byte(in), uint16(1))
		f.Add([]byte(in), uint16(4096))
	}
}

// The answer to TIME comes with every batch of votes, in any pieces, and costs nothing.
func TestReader_reads_the_clock_where_it_is_expected(t *testing.T) {
	const now, pair = "*2\r\n$10\r\n1700000000\r\n$6\r\n000123\r\n", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n"
	for piece := 1; piece <= len(now); piece++ {
		r := NewReader()
		r.AwaitClock()
		var got []any
		for part := range slices.Chunk([]byte(now+pair), piece) {
			r.Feed(part)
			for {
				v, ok, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if c, isClock := v.(*ClockReading); isClock {
					at, sound := c.Time()
					v = fmt.Sprint(at.UnixMicro(), sound)
				}
				got = append(got, v)
			}
		}
		want := []any{"1700000000000123 true", []any{[]byte("1"), []byte("2")}} // the second is not expected
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("in pieces of %d: %v, want %v", piece, got, want)
		}
	}
	r := NewReader()
	if n := testing.AllocsPerRun(100, func() {
		r.AwaitClock()
		r.Feed([]byte(now))
		r.Next()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestReader_takes_nothing_else_for_the_clock(t *testing.T) {
	for in, want := range map[string]any{
		"+OK\r\n":                      "OK",
		"$-1\r\n":                      nil,
		"*1\r\n:1\r\n":                 []any{int64(1)},
		"*3\r\n:1\r\n:2\r\n:3\r\n":     []any{int64(1), int64(2), int64(3)},
		"*2\r\n:1\r\n:2\r\n":           "odd",
		"*2\r\n$1\r\nx\r\n$1\r\n2\r\n": "odd",
		"*2\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n2\r\n": "odd",
		"*2\r\n$-1\r\n$1\r\n2\r\n":                      "odd",
	} {
		r := NewReader()
		r.AwaitClock()
		r.Feed([]byte(in))
		v, ok, err := r.Next()
		if c, isClock := v.(*ClockReading); isClock {
			if _, sound := c.Time(); !sound {
				v = "odd"
			}
		}
		if !ok || err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%q: %v, %v, %v; want %v", in, v, ok, err, want)
		}
	}
}

// What redigo reads is read alike, and what it refuses is refused.
func FuzzReader_reads_what_redigo_reads(f *testing.F) {
	seedReader(f)
	f.Fuzz(func(t *testing.T, in []byte, piece uint16) {
		if claimsMuch(in) || len(in) > maxLine {
			return
		}
		replies, err := readAll(in, 1+int(piece))
		var got []any
		for _, v := range replies {
			got = append(got, asRedigo(v))
		}
		want, sound := byRedigosReader(in)
		if (err == nil) != sound { // one of them waits for a line's end to say so
			more := append(slices.Clip(in), '\r', '\n')
			_, sound = byRedigosReader(more)
			_, err = readAll(more, len(more))
		}
		if !reflect.DeepEqual(got, want) || (err == nil) != sound {
			t.Errorf("%q: read %#v, %v; redigo %#v, sound: %v", in, got, err, want, sound)
		}
	})
}

// L23: whatever comes, memory is bounded by it, and replies do not depend on how
// it was cut into pieces.
func FuzzReader_is_bounded(f *testing.F) {
	seedReader(f)
	f.Fuzz(func(t *testing.T, in []byte, piece uint16) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := readAll(in, 1+int(piece))
		runtime.ReadMemStats(&after)
		// A one-byte element is boxed, and an array has room for a fold at once.
		if used := after.TotalAlloc - before.TotalAlloc; used > 256*uint64(len(in))+256<<10 {
			t.Errorf("%d bytes allocated for %d that came", used, len(in))
		}
		whole, wholeErr := readAll(in, len(in)+1)
		if !reflect.DeepEqual(got, whole) || fmt.Sprint(err) != fmt.Sprint(wholeErr) {
			t.Errorf("%q in pieces of %d: %#v, %v; whole: %#v, %v", in, 1+int(piece), got, err, whole, wholeErr)
		}
	})
}
