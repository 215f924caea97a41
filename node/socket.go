package node

import (
	"net"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// socket is a connection to a master: requests are written to it and replies are
// received from it.
type socket struct {
	net.Conn
	raw     net.Conn // below TLS
	replies *wire.Reader
	chunk   []byte // buffer for reads from the connection

	expires time.Time // of the login when it was dialled; zero: never
}

// chunkSize bounds the bytes of one read from a connection.
const chunkSize = 4 << 10

func newWire(secured, raw net.Conn) *socket {
	return &socket{Conn: secured, raw: raw, replies: wire.NewReader(), chunk: make([]byte, chunkSize)}
}

// receive waits for the next reply. What may be one is described at reader.
func (w *socket) receive() (any, error) {
	for {
		reply, ok, err := w.replies.Next()
		if ok || err != nil {
			return reply, err
		}
		n, err := w.Read(w.chunk)
		w.replies.Feed(w.chunk[:n])
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// abort has the next Close throw away bytes that were not transmitted yet. Otherwise
// the kernel would go on trying after Close, and could deliver an acquire when
// the link heals, after its release went over the next connection (L3).
func (w *socket) abort() {
	if tcp, ok := w.raw.(interface{ SetLinger(int) error }); ok {
		tcp.SetLinger(0)
	}
}
