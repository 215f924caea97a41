package faultproxy

import (
	"container/heap"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// What enters while something else is on its way does not wait for it: a
// hundred reads are due an hour after they came, and not a hundred hours.
func TestLine_delays_bytes_not_their_senders(t *testing.T) {
	c, err := NewCarrier()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	line := &Line{carrier: c}
	line.SetDelay(time.Hour)
	began, ended := time.Now(), make(chan struct{}, 1)
	line.take(iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 100))), nil, ended)
	if len(c.load) != 101 || len(ended) > 0 {
		t.Fatalf("%d parcels on their way, ended: %d; want 100 and the end", len(c.load), len(ended))
	}
	for _, p := range c.load {
		if late := p.due.Sub(began.Add(time.Hour)); late < 0 || late > 30*time.Minute {
			t.Errorf("a parcel is due %v after an hour", late)
		}
	}
}

// The carrier is one for lines of all lengths: who comes last may be due first.
// Nothing overtakes on one line, not even when that gets shorter.
func TestCarrier_delivers_what_is_due_first(t *testing.T) {
	c := &Carrier{away: true} // as if it were about to look
	far, near := &Line{carrier: c}, &Line{carrier: c}
	far.SetDelay(time.Hour)
	far.take(reads("1 ", func() { far.SetDelay(0) }, "2 "), nil, nil)
	near.SetDelay(time.Minute)
	near.take(reads("first "), nil, nil)
	var order strings.Builder
	for len(c.load) > 0 {
		order.Write(heap.Pop(&c.load).(*parcel).data)
	}
	if order.String() != "first 1 2 " {
		t.Errorf("delivered %q, want what is due first first", order.String())
	}
}

// reads returns the texts one by one, and calls the functions between them.
func reads(script ...any) io.Reader { return &reading{script} }

type reading struct{ script []any }

func (r *reading) Read(b []byte) (int, error) {
	for len(r.script) > 0 {
		next := r.script[0]
		r.script = r.script[1:]
		if text, ok := next.(string); ok {
			return copy(b, text), nil
		}
		next.(func())()
	}
	return 0, io.EOF
}
