package simulate

import (
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// Where the masters deliver no messages, a holder reads a request with its next renewal.
func TestA_request_whose_message_is_lost_reaches_its_holder_with_a_renewal(t *testing.T) {
	t.Parallel()
	s := simulated(t, plan.Config{Swarm: true, Lock: plan.Election, Mute: true, Seeds: 60}).Stats
	if made, failed := s.Made[tally.RequestReaches], s.Failed[tally.RequestReaches]; made == 0 || failed > 0 {
		t.Errorf("looked %d times, and a request was missing %d times", made, failed)
	}
	t.Logf("looked %d times", s.Made[tally.RequestReaches])
}
