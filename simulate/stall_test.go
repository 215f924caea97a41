package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
)

func TestA_schedule_that_stands_still_is_given_up(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	cfg := plan.Config{Seed: 7}
	cfg.SetDefaults()
	s := plan.Draw(&cfg, cfg.Seed)
	_, err := watch(s, options{workload: func(*promises.Caller, *redlock.Client) { <-never }}, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "seed 7 stands still") {
		t.Errorf("error %v", err)
	}
}
