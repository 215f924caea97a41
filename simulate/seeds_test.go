package simulate

import (
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Seeds of the swarm that broke a promise once, each for a reason of its own that
// nothing else shows as well. Most are of the first 50,000 schedules with every kind
// of lock.
func TestSeeds_that_once_broke_a_promise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why   string
		kind  plan.LockKind
		seeds []uint64
	}{
		{"lost before Unlock was called, and back at a master by an earlier repair", plan.PlainLock, []uint64{17711, 39722}},
		{"lost before Unlock was called, and handed to the lease again at a master that had queued it", plan.FairFencedLock, []uint64{4843}},
		{"lost before Unlock was called, and handed to the lease again at a master that had queued it", plan.FairLock, []uint64{48698}},
		{"lost before Unlock was called, and back at a master", plan.PlainLock, []uint64{22603, 33303}},
		{"not asked again, and so taken for one that was never asked", plan.FairLock, []uint64{34763}},
		{"given by a message that was not believed, to a waiter that had gone", plan.PlainLock, []uint64{17472}},
		{"free while the clocks of two masters stood still, and their quarantines came and went", plan.PlainLock, []uint64{16442}},
		{"stopped in the middle of a look, and its connection was gone when it went on: a panic of the model", plan.ReadWriteLock, []uint64{5773}},
		{"queued by a connection that was closed, after its release had come by another", plan.PlainLock, []uint64{50036}},
		{"flushed twice while its clock stood still, so that its second marker was of the same instant", plan.PlainLock, []uint64{36780}},
		{"given back for the TTL of a shorter Extend, at a master that had refused it and kept the key for longer", plan.PlainLock, []uint64{68951}},
		{"free at a master whose crash broke no connection, which the waiter learns of by a heartbeat", plan.FairLock, []uint64{69842}},
		{"free at a master whose clock was set back, and which keeps for longer what it gave to a waiter that had gone", plan.FairLock, []uint64{2255}},
		{"queued by a connection that was closed, or by a snapshot, and still there when its client closed", plan.PlainLock, []uint64{1368}},
		{"queued by a connection that was closed, or by a snapshot, and still there when its client closed", plan.FencedLock, []uint64{1814}},
		{"asked when its client was closing, and answered when that was over", plan.PlainLock, []uint64{2924}},
		{"asked again while the first ask was on its way, which then could not be sent", plan.FairFencedLock, []uint64{6618}},
		{"stopped in the middle of giving back what it had, until after the end", plan.FairFencedLock, []uint64{37082}},
		{"given as its context ended, and told that there was no quorum", plan.ReadWriteLock, []uint64{52, 166}},
		{"closed when one master was just about to answer, and another never", plan.ReadWriteLock, []uint64{27900, 32080}},
		{"reading by a command from a connection that was closed, when its client had closed", plan.ReadWriteLock, []uint64{15057}},
		{"over while its client stood still, and nothing happened until all had been well for long", plan.ReentrantLock, []uint64{34347}},
		{"adopted after a Resize to fewer, and held since before", plan.SemaphoreLock, []uint64{49646}},
		{"wanted by one who had found all masters quarantined, after a suspension, and rested", plan.FencedLock, []uint64{731}},
		{"free while one hung who had been told that it is its turn", plan.ReadWriteLock, []uint64{5394, 29324, 45654}},
		{"free while one hung who had been told that it is its turn", plan.SemaphoreLock, []uint64{22618, 33470}},
		{"queued by the first ask of a fair waiter, on a connection that was closed", plan.FairLock, []uint64{39543}},
		{"over for the moment that its clock was ahead, and valid when that was set back", plan.FairLock, []uint64{21535}},
		{"extended when the renewal that was under way had ended", plan.FairLock, []uint64{30848}},
		{"announced a nap late by a clock that was slow, after it had been set", plan.FencedLock, []uint64{16133}},
		{"free but for a release that the master had refused, and that is sent with the next heartbeat", plan.FencedLock, []uint64{43185}},
		{"not sure to have a token of its own, when the counters were lost and the clocks differed by more than the guard", plan.Election, []uint64{765, 30604}},
		{"seen by one Observe with its last word, and by the next one without, as only a minority knew it", plan.Election, []uint64{8801}},
		{"asked to extend while a renewal was under way, which succeeded: the lease had a new end to wait for", plan.MultiLock, []uint64{45411}},
	} {
		for _, seed := range c.seeds {
			r := simulated(t, plan.Config{Swarm: true, Seed: seed, Seeds: 1, Lock: c.kind, Usual: true})
			for _, f := range r.Failures {
				t.Errorf("%s: %s seed %d: %v", c.why, c.kind, f.Seed, f.Violations)
			}
		}
	}
}

// The same with one wrong clock.
func TestSeeds_with_one_wrong_clock_that_once_broke_a_promise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		seed uint64
	}{
		{"believed by a newcomer for what it had written of it itself (S85)", 16336014},
		{"counted by a master whose clock ended the permits early before the lease was returned", 16811466},
	} {
		r := simulated(t, plan.Config{Swarm: true, Faults: plan.OneClock, Seed: c.seed, Seeds: 1})
		for _, f := range r.Failures {
			t.Errorf("%s: seed %d: %v", c.why, f.Seed, f.Violations)
		}
	}
}

// The same of schedules in which clients have habits, and leaders are asked to let go.
func TestSeeds_with_habits_that_once_broke_a_promise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		seed uint64
	}{
		{"asked to let go by a client that had been suspended, after another (L70)", 701247},
		{"asked to let go by one and by another, of which one master told late (L77)", 710829},
		{"asked to let go while it was cut off from all masters", 712901},
		{"closed by a thread that was stopped in the middle, while another took the lock", 724606},
		{"owed a release by a thread that was stopped until all had been well for long", 743283},
		{"kept out of a master that was back with the key of an earlier leader, whose release came after the renewal", 711215},
		{"given the lock, sent its ask once more, and given it again when its lease had ended (L75)", 701620},
	} {
		r := simulated(t, plan.Config{Swarm: true, Seed: c.seed, Seeds: 1, Lock: plan.Election})
		for _, f := range r.Failures {
			t.Errorf("%s: seed %d: %v", c.why, f.Seed, f.Violations)
		}
	}
}
