package redlock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestAdoptGoesOnWithTheLeaseOfAHolderThatCrashed(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		crashed, restarted := dial(t, addrs), dial(t, addrs)
		for _, opts := range [][]redlock.LockOption{
			{redlock.NoRenew(), redlock.Metadata("nightly")},
			{redlock.NoRenew(), redlock.Metadata("nightly"), redlock.Fenced()},
			{redlock.NoRenew(), redlock.Fenced(), redlock.Fair()},
		} {
			before := lock(t, crashed.Mutex("orders", opts...)) // and never heard of again
			m := restarted.Mutex("orders", opts...)

			lease, err := m.Adopt(ctx, before.Value())

			if err != nil {
				t.Fatal(err)
			}
			if lease.Value() != before.Value() || lease.Token() != before.Token() || !lease.Valid() {
				t.Errorf("adopted %q with token %d; want %q with token %d", lease.Value(), lease.Token(), before.Value(), before.Token())
			}
			_, err = m.TryLock(ctx)
			mustBe(t, err, redlock.ErrTaken)
			if err := lease.Unlock(ctx); err != nil {
				t.Fatal(err)
			}
			next := lock(t, m)
			if before.Token() > 0 && next.Token() <= before.Token() {
				t.Errorf("token %d after %d", next.Token(), before.Token())
			}
			next.Release()
		}
	})
}

func TestAdoptedLeaseIsRenewed(t *testing.T) {
	ms := fiveMasters(t)
	old, links := ms.client()
	before := mustLock(t, old.Mutex("orders", redlock.NoRenew()))
	for _, l := range links {
		l.set(down) // it has crashed
	}
	c, _ := ms.client()
	lease, err := c.Mutex("orders").Adopt(ctx, before.Value())
	if err != nil {
		t.Fatal(err)
	}

	for range 30 {
		ms.clk.Add(100 * time.Millisecond)
	}

	if !lease.Valid() {
		t.Errorf("after 3s of a TTL of 1s: %v", lease.Err())
	}
}

func TestAdoptCountsTheValidityFromBeforeTheSend(t *testing.T) {
	ms := fiveMasters(t)
	old, _ := ms.client()
	before := mustLock(t, old.Mutex("orders", redlock.NoRenew()))
	ms.clk.Add(500 * time.Millisecond)
	c, links := ms.client()
	links[0].before = func(*node.Command) { ms.clk.Add(20 * time.Millisecond) } // while the masters are asked
	asked := ms.clk.Now()

	lease, err := c.Mutex("orders", redlock.NoRenew()).Adopt(ctx, before.Value())

	if err != nil {
		t.Fatal(err)
	}
	if until := lease.Until(); until.After(asked.Add(990*time.Millisecond)) || until.Before(asked.Add(900*time.Millisecond)) {
		t.Errorf("valid until %v after it was asked, want a TTL of 1s without the drift allowance of 10ms", until.Sub(asked))
	}
}

func TestAdoptOfALockThatSomebodyElseHasOrNobody(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	m := c.Mutex("orders")
	gone := mustLock(t, m)
	if err := gone.Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	_, err := m.Adopt(ctx, gone.Value())
	mustBe(t, err, redlock.ErrNotHeld)

	theirs := mustLock(t, m)
	_, err = m.Adopt(ctx, gone.Value())
	mustBe(t, err, redlock.ErrTaken)
	if !theirs.Valid() {
		t.Error("a failed Adopt has taken the lock away")
	}

	for _, l := range links[:3] {
		l.set(down)
	}
	_, err = m.Adopt(ctx, theirs.Value())
	mustBe(t, err, redlock.ErrNoQuorum)
}

func TestAdoptWithAMajorityThatHasTheValue(t *testing.T) {
	for lost, want := range map[int]error{1: nil, 2: nil, 3: redlock.ErrNotHeld} {
		ms := fiveMasters(t)
		old, _ := ms.client()
		before := mustLock(t, old.Mutex("orders", redlock.NoRenew()))
		for i := range lost {
			ms.forget(i, "orders")
		}
		c, _ := ms.client()
		_, err := c.Mutex("orders").Adopt(ctx, before.Value())
		mustBe(t, err, want)
		if stored := ms.holders("orders"); want != nil && !slices.Equal(stored, []string{"", "", "", before.Value(), before.Value()}) {
			t.Errorf("the masters store %q after Adopt was refused, want what they had", stored)
		}
	}
}

func TestAdoptFencedWithoutAMajorityForTheTokenIsNoQuorum(t *testing.T) {
	masters := startMasters(t, 5)
	before := lock(t, masters.client(t).Mutex("orders", redlock.Fenced(), redlock.NoRenew()))
	inspect(t, masters.client(t), "orders", func(h redlock.Holder) bool { return h.Token != 0 })
	for i, s := range masters {
		do(t, s, "SET", "redlock:token:orders", i+1) // no three agree
	}

	_, err := masters.client(t).Mutex("orders", redlock.Fenced()).Adopt(ctx, before.Value())

	mustBe(t, err, redlock.ErrNoQuorum)
}

func TestAdoptRefusesWhatItCannotAdopt(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	for name, m := range map[string]*redlock.Mutex{"value": c.Mutex("a"), "Multi": c.Multi([]string{"a", "b"})} {
		value := "c/n/1:0"
		if name == "value" {
			value = ""
		}
		if _, err := m.Adopt(ctx, value); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
	if ran := ms.nodes[0].ran(); len(ran) > 0 {
		t.Errorf("the masters were asked: %v", ran)
	}
}

func TestS35_adopt_does_not_count_masters_that_lost_their_memory_lately(t *testing.T) {
	ms := fiveMasters(t)
	old, _ := ms.client()
	before := mustLock(t, old.Mutex("orders", redlock.NoRenew()))
	c, links := ms.client()
	for _, l := range links[:3] {
		l.young = true // the value is there, but may have been put back behind somebody else's lease
	}

	_, err := c.Mutex("orders").Adopt(ctx, before.Value())

	mustBe(t, err, redlock.ErrNoQuorum)
}
