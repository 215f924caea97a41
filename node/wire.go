package node

import "net"

// wire is a connection to a master: requests are written to it and replies are
// received from it.
type wire struct {
	net.Conn
	raw     net.Conn // below TLS
	replies *reader
	chunk   []byte // for what is read from the connection
}

// chunkSize is how much is read from a connection at once.
const chunkSize = 4 << 10

func newWire(secured, raw net.Conn) *wire {
	return &wire{Conn: secured, raw: raw, replies: newReader(), chunk: make([]byte, chunkSize)}
}

// receive waits for the next reply. What may be one is described at reader.
func (w *wire) receive() (any, error) {
	for {
		reply, ok, err := w.replies.next()
		if ok || err != nil {
			return reply, err
		}
		n, err := w.Read(w.chunk)
		w.replies.feed(w.chunk[:n])
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// abort has the next Close throw away what was not transmitted yet. Otherwise
// the kernel would go on trying after Close, and could deliver an acquire when
// the link heals, after its release went over the next connection (L3).
func (w *wire) abort() {
	if tcp, ok := w.raw.(interface{ SetLinger(int) error }); ok {
		tcp.SetLinger(0)
	}
}
