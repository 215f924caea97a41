package node

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/quorumlock/quorumlock/internal/seam"
)

// writer is the sending side of a connection. Callers append requests under its mutex
// and never wait; one goroutine writes whatever has gathered, in one write per batch.
type writer struct {
	net     net.Conn
	threads seam.Threads
	writes  atomic.Uint64

	mu     sync.Mutex
	out    []byte
	err    error         // set: nothing is accepted any more
	asleep bool          // the writer waits for wake
	wake   chan struct{} // holds at most one token, and only if the writer was asleep
	ended  chan struct{} // closed when the writer has ended
	seal   func()        // appends the calls held back for the write; under the mutex
}

// keepBuffer bounds the write buffer that is kept after a burst.
const keepBuffer = 1 << 20

func newWriter(c net.Conn) *writer {
	return &writer{net: c, threads: seam.System, wake: make(chan struct{}, 1), ended: make(chan struct{}), seal: func() {}}
}

// appended tells the writer that there is something to write. The mutex is held.
func (o *writer) appended() {
	if o.asleep {
		o.asleep = false
		o.wake <- struct{}{}
	}
}

// refuse makes err the answer to every append from now on. Bytes that were appended before
// are still written. Only the first call counts.
func (o *writer) refuse(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		o.appended()
	}
}

// sever refuses and closes the connection, so that reader and writer end.
func (o *writer) sever(err error) {
	o.refuse(err)
	o.net.Close()
}

// cause returns why the connection ended when reading failed with err: the reason for
// severing it, if it was severed.
func (o *writer) cause(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	return err
}

// write writes batches until the connection breaks, or until nothing is left
// and nothing more is accepted.
func (o *writer) write() {
	defer close(o.ended)
	var batch []byte
	for {
		if batch = o.take(batch[:0]); batch == nil {
			return
		}
		o.writes.Add(1)
		if _, err := o.net.Write(batch); err != nil {
			o.sever(err)
			return
		}
		if cap(batch) > keepBuffer {
			batch = make([]byte, 0, keepBuffer)
		}
	}
}

// take waits for requests and returns all there are, leaving spare for the next
// ones; nil means that there will be none.
func (o *writer) take(spare []byte) []byte {
	for {
		// The others that are about to append get a turn first: larger batches
		// save both sides system calls, and a lone caller loses nothing.
		o.threads.Yield()
		o.mu.Lock()
		o.seal()
		if len(o.out) > 0 {
			batch := o.out
			o.out = spare
			o.mu.Unlock()
			return batch
		}
		if o.err != nil {
			o.mu.Unlock()
			return nil
		}
		o.asleep = true
		o.mu.Unlock()
		o.threads.Await(o.wake)
	}
}
