package chaos

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/quorumlock/quorumlock/simulate"
)

// Workload is one way to use one kind of lock.
type Workload struct {
	Name    string
	Callers int // in each client
	// Locks are the names that only this workload uses.
	Locks []string
	// Registers are what its holders write to, if that is not one for each lock, by the
	// same name.
	Registers []string
	// Capacity is how much of a lock may be held at any instant: 1 for a mutex.
	// The weights of its holds add up to no more.
	Capacity int
	// Simulated is the simulator's name of the kind of lock.
	Simulated simulate.LockKind
	// Turn takes a lock, uses it and gives it up, or does not get it. An error
	// says that something else went wrong.
	Turn func(ctx context.Context, c *Caller) error
	// Check judges what the holders of one of the locks did; exclusion, losses and
	// left keys are judged for every workload alike. It may be nil.
	Check func(h *History, lock string) []Finding
	// Audit judges what cannot be judged lock by lock, or not without the faults. It
	// may be nil.
	Audit func(r *Report) []Finding
	// Tell says what else it came to. It may be nil.
	Tell func(r *Report, w *Workload) string
}

// registers are the names that its holders write to.
func (w *Workload) registers() []string {
	if w.Registers != nil {
		return w.Registers
	}
	return w.Locks
}

// anyLock draws one of the locks that the workload uses.
func (c *Caller) anyLock() string {
	locks := c.workload.Locks
	return locks[c.rand.IntN(len(locks))]
}

// Workloads are all that there are.
var Workloads = []*Workload{counter, register, fenced, fair, several, chain, shared, permits, elected, nested, queued, slots, latch}

func workloadNamed(name string) (*Workload, error) {
	for _, w := range Workloads {
		if w.Name == name {
			return w, nil
		}
	}
	return nil, fmt.Errorf("chaos: no workload is named %q", name)
}

// streamOf tells the random numbers of one purpose from those of another, so
// that leaving something out changes nothing else.
func streamOf(purpose string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return h.Sum64()
}
