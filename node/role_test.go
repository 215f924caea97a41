package node

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// The clock that was read behind one write calls for another look at the role, while votes
// of the next write have gathered. That question comes behind what is read for them:
// otherwise its answer would have them count, and whether the master has forgotten since
// would come out too late.
func TestS24c_the_role_is_not_asked_for_between_votes_and_their_marker(t *testing.T) {
	var settled []call
	c := newConn(&socket{Conn: newHeldConn(), replies: wire.NewReader()}, "addr", 100, func(k call, _ wire.Reply) { settled = append(settled, k) }, witness{
		needed:  func() bool { return true },
		knows:   func(marker []byte, _ time.Time, _ time.Duration) bool { return string(marker) == "ours" },
		clock:   &wire.Command{Op: wire.OpRead, Name: "TIME"},
		read:    get(wire.MarkerKey("")),
		role:    &wire.Command{Op: wire.OpRead, Name: "INFO", Args: []string{"replication"}},
		remains: func([]byte) bool { return true },
		now:     func() time.Duration { return time.Second },
	})
	write := func() {
		c.mu.Lock()
		c.sealBatch()
		c.mu.Unlock()
	}
	c.vouching.role.asked = time.Second // lately
	if err := c.send(&call{cmd: wire.Acquire("k", "v", time.Second)}); err != nil {
		t.Fatal(err)
	}
	if c.roleProven(stubTime) {
		t.Fatal("the role is known")
	}
	write()

	for c.calls.n > 0 {
		k, _, _ := c.next()
		var answer any = "OK"
		switch {
		case k.asks == forMarkerAndTime:
			answer = []byte("another's")
		case k.asks == forTime:
			answer = &wire.ClockReading{Numbers: [2]int64{stubTime.Unix(), 0}, Read: 2}
		case k.asks == forRole:
			answer = []byte("role:master\r\n")
		}
		if err := c.answered(&k, answer); err != nil {
			t.Fatal(err)
		}
	}

	if len(settled) != 1 || !settled[0].doubted {
		t.Errorf("%+v: the vote counts, although the marker behind it is another's", settled)
	}
}
