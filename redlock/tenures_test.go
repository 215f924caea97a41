package redlock

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// recording is a master that answers nothing, and remembers what it was asked. Timers ask on goroutines
// of their own.
type recording struct {
	mu    sync.Mutex
	asked []wire.Op
}

func (r *recording) Addr() string                                    { return "master" }
func (r *recording) Subscribe(string, node.Listener) (cancel func()) { return func() {} }
func (r *recording) Close() error                                    { return nil }

func (r *recording) Do(cmd *wire.Command, _ func(wire.Reply)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, cmd.Op)
}

// owner is a client whose tenure of one Cached lock the test drives.
type owner struct {
	*testing.T
	client *Client
	clock  *clock.Mock
	master recording
	lock   *lock
}

func own(t *testing.T) *owner {
	o := &owner{T: t, clock: clock.NewMock()}
	c, err := newClient([]node.Node{&o.master}, WithClock(o.clock), WithTTL(time.Second), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	o.client, o.lock = c, &c.Mutex("lock", Cached(time.Hour)).lock
	return o
}

func (o *owner) comes() (*tenure, tenureEffects) {
	return o.client.tenures.come(o.lock, context.Background(), false)
}

// acquires has the caller that asks get a lease.
func (o *owner) acquires(t *tenure) (lease, section *Lease) {
	of := *o.lock
	of.tenure = t
	now := o.client.watch.Now()
	lease = newLease(context.Background(), &of, of.kind.claim(), of.value(), now)
	if !lease.begin(now) {
		o.Fatal("it is closed")
	}
	return lease, t.post(tenureEvent{kind: leaseAcquired, lock: o.lock, lease: lease}).section
}

func (o *owner) had(op wire.Op) (n int) {
	o.master.mu.Lock()
	defer o.master.mu.Unlock()
	for _, asked := range o.master.asked {
		if asked == op {
			n++
		}
	}
	return n
}

func TestTenure_gives_back_a_lease_that_has_expired(t *testing.T) {
	o := own(t)
	tenure, _ := o.comes()
	lease, section := o.acquires(tenure)
	section.Release()
	lease.mu.Lock()
	lease.renewAt, lease.budget = 0, 0 // it expires, and no timer has fired yet
	lease.mu.Unlock()

	_, fx := o.comes()

	if fx.joined == nil || o.had(wire.OpRelease) != 1 {
		t.Fatalf("it waits: %v, %d releases", fx.joined != nil, o.had(wire.OpRelease))
	}
	select {
	case <-fx.joined.ready:
	default:
		t.Error("behind the release nobody asks")
	}
}

// Who uses a cached lock is warned when the lease that the process has is not renewed.
func TestTenure_a_section_is_at_risk_when_its_lease_is(t *testing.T) {
	o := own(t)
	tenure, _ := o.comes()
	_, section := o.acquires(tenure)
	risk := section.AtRisk()
	if len(risk) != 0 {
		t.Error("at risk from the beginning")
	}

	o.clock.Add(600 * time.Millisecond) // the master answers no renewal

	if len(risk) != 1 || !section.Valid() {
		t.Errorf("%d warnings, valid: %v", len(risk), section.Valid())
	}
	if n := o.had(wire.OpExtend); n != 1 {
		t.Errorf("%d renewals at a time, want 1", n)
	}
}

func TestTenure_gives_no_section_of_a_lease_that_ended_as_it_was_acquired(t *testing.T) {
	o := own(t)
	tenure, _ := o.comes()
	of := *o.lock
	of.tenure = tenure
	lease := newLease(context.Background(), &of, of.kind.claim(), of.value(), o.client.watch.Now())
	lease.lose(ErrLost)

	section := tenure.post(tenureEvent{kind: leaseAcquired, lock: o.lock, lease: lease}).section

	if section != nil {
		t.Errorf("gives %v", section)
	}
	if n := len(o.client.tenures.byLock); n != 0 {
		t.Errorf("%d tenures are left", n)
	}
}

func TestTenure_leaves_nothing(t *testing.T) {
	o := own(t)
	before := o.client.timers.Len()
	tenure, _ := o.comes()
	_, section := o.acquires(tenure)
	held := o.client.timers.Len()
	section.Release()
	if o.client.timers.Len() != held+1 {
		t.Error("no timer while it rests")
	}

	o.client.tenures.giveBack()

	if got := o.client.timers.Len(); got != before || len(o.client.tenures.byLock) != 0 {
		t.Errorf("%d timers, before %d, and %d tenures", got, before, len(o.client.tenures.byLock))
	}
	if o.had(wire.OpRelease) != 1 {
		t.Errorf("released %d times", o.had(wire.OpRelease))
	}
	again, _ := o.comes()
	if again == tenure {
		t.Error("a tenure that is over is used again")
	}
	tenure.post(tenureEvent{kind: timerFired}) // late
	if o.client.tenures.byLock[again.id] != again {
		t.Error("the end of a tenure takes the next one away")
	}
}

func TestTenure_passes_the_section_on_of_who_gives_up(t *testing.T) {
	o := own(t)
	tenure, _ := o.comes()
	_, section := o.acquires(tenure)
	_, fx := o.comes()
	section.Release()
	served := fx.joined.lease
	if served == nil || !served.Valid() {
		t.Fatal("it is not served")
	}

	tenure.post(tenureEvent{kind: callerLeft, caller: fx.joined})

	if err := served.Err(); !errors.Is(err, ErrUnlocked) {
		t.Errorf("its section says %v", err)
	}
	if _, fx := o.comes(); fx.section == nil {
		t.Error("the next caller does not get it")
	}
}

func TestTenure_renews_a_lease_when_others_may_wait(t *testing.T) {
	for _, missed := range []bool{false, true} {
		o := own(t)
		tenure, _ := o.comes()
		if missed {
			o.client.tenures.missed()
		} else {
			o.client.tenures.othersWait(o.lock.kind.id, "another/nonce/C1:0")
		}
		o.acquires(tenure)

		o.clock.Add(time.Millisecond)

		for deadline := time.Now().Add(30 * time.Second); o.had(wire.OpExtend) != 1; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("missed %v: %d renewals", missed, o.had(wire.OpExtend))
			}
		}
		o.client.tenures.missed()
		lease := tenure.lease
		lease.mu.Lock()
		if lease.renewal == nil || lease.renewal.next == 0 {
			t.Errorf("missed %v: no renewal follows the one under way", missed)
		}
		lease.mu.Unlock()
	}
}

// barring is a master that answers nothing, and says whether it votes.
type barring struct {
	recording
	why error
}

func (b *barring) Votes() error { return b.why }

// A TryLock behind another caller of its process is told what is known now, and not what that caller
// was told when it last asked.
func TestTryLock_behind_one_that_asks_says_whether_a_quorum_votes(t *testing.T) {
	for _, c := range []struct{ why, want error }{{nil, ErrTaken}, {node.ErrSilent, ErrNoQuorum}} {
		master := &barring{why: c.why}
		client, err := newClient([]node.Node{master}, WithClock(clock.NewMock()), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		m := client.Mutex("lock", Cached())
		client.tenures.come(&m.lock, context.Background(), false)

		_, err = m.TryLock(context.Background())

		if !errors.Is(err, c.want) {
			t.Errorf("where the master votes with %v: %v, want %v", c.why, err, c.want)
		}
	}
}

// Of several renewals that are to follow one under way the first counts.
func TestRenewal_is_followed_as_soon_as_any_asks_for_it(t *testing.T) {
	x := &renewal{}
	for _, wait := range []struct{ asked, want time.Duration }{{2, 2}, {3, 2}, {1, 1}, {0, 1}} {
		if x.follow(wait.asked); x.next != wait.want {
			t.Errorf("after %d: within %d, want %d", wait.asked, x.next, wait.want)
		}
	}
}

// A renewal that is due already stays when it is.
func TestRenewal_is_not_put_off_by_one_that_may_come_later(t *testing.T) {
	o := own(t)
	now := o.client.watch.Now()
	l := &Lease{validity: validity{since: now}}
	for _, c := range []struct{ at, wait, want time.Duration }{{5, 9, 5}, {5, 3, 3}, {5, 0, 1}, {0, 3, 0}} {
		l.renewAt = c.at
		if l.renewSooner(now, c.wait); l.renewAt != c.want {
			t.Errorf("due at %d, wanted within %d: due at %d, want %d", c.at, c.wait, l.renewAt, c.want)
		}
	}
}

// A lease that was granted before its name left is one: whoever asked has it, and no error.
func TestGroups_a_lease_that_was_granted_as_its_name_left_is_given(t *testing.T) {
	g := &Groups{}
	g.newest.Store(&spread.Map{})
	granted := &Lease{}
	lease, err := g.during(context.Background(), "lock", nil, []string{"orders"}, func(context.Context) (*Lease, error) {
		g.waiting[0].leave(ErrMoved)
		return granted, nil
	})
	if lease != granted || err != nil {
		t.Errorf("%v, %v", lease, err)
	}
}
