package simulate

import "testing"

func TestStorage_refuses_an_older_token(t *testing.T) {
	// Given a holder that read, and a later one that has written since.
	s := &Storage{trial: &trial{world: newWorld(), config: &Config{}}}
	s.trial.check = newChecker(s.trial)
	old := s.Read()
	if !s.Write(s.Read(), 8) {
		t.Fatal("the first write was refused")
	}
	// When the earlier one writes, with a token or without.
	if s.Write(old, 7) {
		t.Error("a write with an older token was accepted")
	}
	if len(s.trial.check.violations) != 0 {
		t.Errorf("violations %v although the write was refused", s.trial.check.violations)
	}
	if !s.Write(old, 0) {
		t.Error("a write without a token was refused")
	}
	// Then only the one without has undone an update.
	if v := s.trial.check.violations; len(v) != 1 || v[0].Kind != LostUpdate {
		t.Errorf("violations %v, want one lost update", v)
	}
}
