package node

import (
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// lookout is a node that looks at another one when it is closed.
type lookout struct {
	Node
	at func()
}

func (l lookout) Close() error {
	l.at()
	return nil
}

// measured is a master that somebody has wrapped.
type measured struct{ *Master }

// A master that hangs keeps Close waiting. The others must not wait for it.
func TestL17_masters_are_closed_side_by_side(t *testing.T) {
	for name, wrapped := range map[string]func(m *Master) Node{
		"a master":         func(m *Master) Node { return m },
		"one in a wrapper": func(m *Master) Node { return measured{m} },
	} {
		t.Run(name, func(t *testing.T) {
			m := connect(t, newStub(t, healthy).addr(), Config{})
			closedSideBySide(t, wrapped(m))
		})
	}
}

func closedSideBySide(t *testing.T, m Node) {
	looked := false

	CloseAll([]Node{lookout{at: func() {
		looked = true
		m.Do(wire.Acquire("k", "v", time.Minute), func(r wire.Reply) {
			if !errors.Is(r.Err, ErrClosed) {
				t.Errorf("%v: the second master was not closing when the first was waited for", r.Err)
			}
		})
	}}, m})

	if !looked {
		t.Error("the first node was not closed")
	}
}
