package node

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// A connection breaks, and its unanswered calls are settled one after the other. Close must
// not find at that very moment that nothing is owed.
func TestL39_a_release_is_owed_while_its_connection_is_given_up(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Minute, Max: time.Minute}})
	s.set(func(args []string) string {
		if ofHandshake(args) {
			return "default"
		}
		return silence
	})
	settling, goOn := make(chan bool), make(chan bool)
	m.Do(get("k"), func(wire.Reply) {
		settling <- true
		<-goOn
	})
	m.Do(release("k"), nil)
	if n := len(m.Owed()); n != 1 {
		t.Errorf("%d releases are owed before", n)
	}
	s.hangUp()
	receiveFrom(t, "the end of the first call", settling)

	during := len(m.Owed())

	close(goOn)
	if during != 1 {
		t.Errorf("%d releases are owed meanwhile, want 1", during)
	}
	eventually(t, "the release is kept", func() bool { return len(m.Owed()) == 1 && m.Status().Undelivered == 1 })
}
