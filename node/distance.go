package node

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// roundTrip measures how far away the master is, by a question that costs it nothing.
// If it takes longer than votes are waited for, it is measured once more: this client
// or the master may have been busy just then.
func (m *Master) roundTrip(d *Dialogue) (time.Duration, error) {
	took, err := m.ping(d)
	if err != nil || m.config.NodeTimeout == 0 || took <= m.config.NodeTimeout {
		return took, err
	}
	again, err := m.ping(d)
	return min(took, again), err
}

func (m *Master) ping(d *Dialogue) (time.Duration, error) {
	asked := m.now()
	_, err := d.Ask(&wire.Command{Op: wire.OpRead, Name: "PING"}) // a refusal took as long
	return m.now() - asked, err
}

// foundTooFar reports whether the votes of the master will come too late to
// count, unless that was so before. The mutex is held.
func (m *Master) foundTooFar() bool {
	before := m.complained.tooFar
	m.complained.tooFar = m.config.NodeTimeout > 0 && m.contact.server.roundTrip > m.config.NodeTimeout
	return m.complained.tooFar && !before
}

// tellTooFar says what becomes of a master that is too far away, and what to do.
func (m *Master) tellTooFar(trip time.Duration) {
	enough := (2*trip + 10*time.Millisecond).Round(10 * time.Millisecond)
	m.config.Logger.Warn("redlock: redis master is too far away: it will never vote", "node", m.Addr(),
		"round_trip", trip.Round(time.Millisecond/10), "node_timeout", m.config.NodeTimeout, "use", fmt.Sprintf("WithNodeTimeout(%v)", enough))
}
