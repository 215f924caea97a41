package node

import (
	"errors"
	"net"
	"testing"
)

// heldConn is a connection whose writes a test lets through one by one.
type heldConn struct {
	net.Conn
	begun  chan string
	let    chan error
	closed chan struct{}
}

func newHeldConn() *heldConn {
	return &heldConn{begun: make(chan string), let: make(chan error), closed: make(chan struct{}, 8)}
}

func (c *heldConn) Write(p []byte) (int, error) {
	c.begun <- string(p)
	return len(p), <-c.let
}

func (c *heldConn) Close() error { c.closed <- struct{}{}; return nil }

func (o *writer) put(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out = append(o.out, s...)
	o.appended()
}

func TestOutbox_gathers_what_comes_during_a_write_into_the_next(t *testing.T) {
	held := newHeldConn()
	o := newWriter(held)
	go o.write()
	o.put("1")
	if got := <-held.begun; got != "1" {
		t.Fatalf("wrote %q", got)
	}
	for _, s := range []string{"2", "3", "4"} {
		o.put(s)
	}
	held.let <- nil
	if got := <-held.begun; got != "234" {
		t.Errorf("wrote %q, want all in one write", got)
	}
	held.let <- nil
	o.put("5") // the writer may be asleep or not yet
	if got := <-held.begun; got != "5" {
		t.Errorf("wrote %q", got)
	}
	o.refuse(ErrClosed)
	held.let <- nil
	<-o.ended
	if n := o.writes.Load(); n != 3 {
		t.Errorf("%d writes", n)
	}
}

func TestOutbox_writes_what_was_accepted_before_it_refused(t *testing.T) {
	held := newHeldConn()
	o := newWriter(held)
	o.put("accepted")
	o.refuse(ErrClosed)
	o.refuse(ErrDown)
	go o.write()
	if got := <-held.begun; got != "accepted" {
		t.Errorf("wrote %q", got)
	}
	held.let <- nil
	<-o.ended
	if o.err != ErrClosed {
		t.Errorf("the reason is %v, want the first one", o.err)
	}
}

func TestOutbox_that_cannot_write_severs_the_connection(t *testing.T) {
	held := newHeldConn()
	o := newWriter(held)
	go o.write()
	o.put("1")
	<-held.begun
	broken := errors.New("broken pipe")
	held.let <- broken
	<-o.ended
	<-held.closed
	if o.err != broken {
		t.Errorf("the reason is %v", o.err)
	}
}

func TestRing_keeps_the_order_while_it_grows(t *testing.T) {
	var r ring[int]
	in, out := 0, 0
	for round := range 100 {
		for range round {
			r.push(in)
			in++
		}
		for range round / 2 {
			if got := r.pop(); got != out {
				t.Fatalf("popped %d, want %d", got, out)
			}
			out++
		}
		for i := range r.n {
			if got := *r.at(i); got != out+i {
				t.Fatalf("at(%d) is %d, want %d", i, got, out+i)
			}
		}
	}
	if r.n != in-out {
		t.Errorf("length %d, want %d", r.n, in-out)
	}
}
