package simulate

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
)

// panicOnly in the environment makes the test binary panic in simulated code.
const panicOnly = "SIMULATE_PANIC_ONLY"

// panicInACallback runs a schedule in which an event panics with a mutex locked,
// which everything needs that is stopped in the middle.
func panicInACallback() {
	cfg := plan.Config{}
	if err := cfg.Check(); err != nil {
		panic(err)
	}
	var mu sync.Mutex
	run(plan.Draw(&cfg, 4711), options{workload: func(p *promises.Caller, _ *redlock.Client) {
		p.Host.Clock.AfterFunc(time.Second, func() {
			mu.Lock()
			panic("boom")
		})
		defer mu.Lock()
		p.Sleep(context.Background(), time.Hour)
	}})
}

func TestA_panic_in_a_callback_is_told_with_its_seed(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), panicOnly+"=1")
	timer := time.AfterFunc(3*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"seed 4711", "boom", "panicInACallback"} {
		if !strings.Contains(string(out), want) {
			t.Fatalf("%v, and nothing of %q in what it says:\n%s", err, want, out)
		}
	}
}
