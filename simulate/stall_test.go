package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

func TestA_schedule_that_stands_still_is_given_up(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	cfg := Config{Seed: 7}
	cfg.setDefaults()
	s := draw(&cfg, cfg.Seed)
	_, err := s.watched(options{workload: func(*Process, *redlock.Client) { <-never }}, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "seed 7 stands still") {
		t.Errorf("error %v", err)
	}
}
