package bench

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/monitor"
	lock "github.com/quorumlock/quorumlock/redlock"
)

// What a lock costs that can be counted exactly. Times are compared by people,
// in docs/performance.md; these numbers are compared at every change. Who makes
// one of them smaller writes the new one here.
const (
	allocationsPerPair  = 6
	goroutinesPerMaster = 2 // a reader and a writer
)

// onFive returns a client of five real masters. It waits for them on a machine
// that stands still: what is counted does not depend on time.
func onFive(t *testing.T) (*Trial, Client) {
	t.Helper()
	trial := &Trial{Masters: realMasters(t, 5).all, Prefix: "regression:"}
	client, err := Redlock(5, lock.WithNodeTimeout(TTL/2)).Open(context.Background(), trial.URLs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return trial, client
}

func TestRegression_a_pair_is_one_SET_and_one_script_at_each_master(t *testing.T) {
	trial, client := onFive(t)
	// The script is loaded by another lock: the slowest masters may still be
	// busy with that when the count begins.
	if err := once(context.Background(), client.Mutex(trial.Prefix+"first")); err != nil {
		t.Fatal(err)
	}
	mutex := client.Mutex(trial.Prefix + "one")
	watch, err := monitor.Watch(trial.Prefix+"one", trial.URLs()...)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	const pairs = 200
	for range pairs {
		if err := once(context.Background(), mutex); err != nil {
			t.Fatal(err)
		}
	}
	within(30*time.Second, func() bool { return watch.Count() >= 10*pairs })
	if set, script, all := watch.Named("SET"), watch.Named("EVALSHA"), watch.Count(); set != 5*pairs || script != 5*pairs || all != 10*pairs {
		t.Errorf("%d pairs on 5 masters: %d SET and %d EVALSHA of %d commands, want %d, %d of %d", pairs, set, script, all, 5*pairs, 5*pairs, 10*pairs)
	}
}

func TestRegression_allocations_of_a_pair_on_five_masters(t *testing.T) {
	trial, client := onFive(t)
	mutex := client.Mutex(trial.Prefix + "one")
	// What is kept for reuse must not be collected meanwhile; and a master that
	// is late, on a busy machine, keeps its round from being reused. The least
	// of several batches is without either.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	n := math.Inf(1)
	for range 10 {
		n = min(n, testing.AllocsPerRun(200, func() {
			if err := once(context.Background(), mutex); err != nil {
				t.Error(err)
			}
		}))
	}
	most := float64(allocationsPerPair)
	if raceDetector { // makes sync.Pool forget now and then
		most *= 3
	}
	if n > most {
		t.Errorf("%v allocations, want at most %v", n, most)
	}
	t.Logf("%v allocations", n)
}

func TestRegression_goroutines_depend_on_the_masters_alone(t *testing.T) {
	trial, client := onFive(t)
	const want = 5 * goroutinesPerMaster
	within(5*time.Second, func() bool { return ours() == want }) // every master has connected
	if n := ours(); n != want {
		t.Fatalf("%d goroutines on 5 masters, want %d", n, want)
	}
	var leases []Lease
	for i := range 1000 {
		lease, err := client.Mutex(trial.Prefix + strconv.Itoa(i)).Lock(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	within(5*time.Second, func() bool { return ours() == want }) // a renewal may be on its way
	if n := ours(); n != want {
		t.Errorf("%d goroutines with 1000 locks held, want %d", n, want)
	}
	for _, lease := range leases {
		if err := lease.Unlock(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// ours counts the goroutines that the library has started.
func ours() (n int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, stack := range bytes.Split(stacks, []byte("\n\n")) {
		_, by, _ := bytes.Cut(stack, []byte("created by "))
		for _, of := range []string{"node", "quorum", "redlock", "drift", "internal/seam"} {
			if bytes.HasPrefix(by, []byte("github.com/quorumlock/quorumlock/"+of+".")) {
				n++
			}
		}
	}
	return n
}
