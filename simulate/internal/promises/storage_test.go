package promises

import (
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

func TestStorage_refuses_an_older_token(t *testing.T) {
	// Given a holder that read, and a later one that has written since.
	s := &Storage{scene: &Scene{World: world.New(), Left: func(*Claim) {}, Config: &plan.Config{}}}
	s.scene.Check = newChecker(s.scene)
	old := s.Read()
	if !s.Write(s.Read(), 8) {
		t.Fatal("the first write was refused")
	}
	// When the earlier one writes, with a token or without.
	if s.Write(old, 7) {
		t.Error("a write with an older token was accepted")
	}
	if len(s.scene.Check.Violations) != 0 {
		t.Errorf("violations %v although the write was refused", s.scene.Check.Violations)
	}
	if !s.Write(old, 0) {
		t.Error("a write without a token was refused")
	}
	// Then only the one without has undone an update.
	if v := s.scene.Check.Violations; len(v) != 1 || v[0].Kind != tally.LostUpdate {
		t.Errorf("violations %v, want one lost update", v)
	}
}
