package redlock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestAdopt_goes_on_with_the_lease_of_a_holder_that_crashed(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		crashed, restarted := dial(t, addrs), dial(t, addrs)
		for _, opts := range [][]redlock.MutexOption{
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

func TestAdopted_lease_is_renewed(t *testing.T) {
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

func TestAdopt_counts_the_validity_from_before_the_send(t *testing.T) {
	ms := fiveMasters(t)
	old, _ := ms.client()
	before := mustLock(t, old.Mutex("orders", redlock.NoRenew()))
	ms.clk.Add(500 * time.Millisecond)
	c, links := ms.client()
	links[0].before = func(*wire.Command) { ms.clk.Add(20 * time.Millisecond) } // while the masters are asked
	asked := ms.clk.Now()

	lease, err := c.Mutex("orders", redlock.NoRenew()).Adopt(ctx, before.Value())

	if err != nil {
		t.Fatal(err)
	}
	if until := lease.Until(); until.After(asked.Add(990*time.Millisecond)) || until.Before(asked.Add(900*time.Millisecond)) {
		t.Errorf("valid until %v after it was asked, want a TTL of 1s without the drift allowance of 10ms", until.Sub(asked))
	}
}

func TestAdopt_of_a_lock_that_somebody_else_has_or_nobody(t *testing.T) {
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

func TestAdopt_with_a_majority_that_has_the_value(t *testing.T) {
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

func TestAdopt_fenced_without_a_majority_for_the_token_is_no_quorum(t *testing.T) {
	masters := startMasters(t, 5)
	before := lock(t, masters.client(t).Mutex("orders", redlock.Fenced(), redlock.NoRenew()))
	inspect(t, masters.client(t), "orders", func(h redlock.Holder) bool { return h.Token != 0 })
	for i, s := range masters {
		do(t, s, "SET", "redlock:token:orders", i+1) // no three agree
	}

	_, err := masters.client(t).Mutex("orders", redlock.Fenced()).Adopt(ctx, before.Value())

	mustBe(t, err, redlock.ErrNoQuorum)
	mustName(t, err, []string{"no quorum knows the fencing token"})
}

// Another library's value names no waiter.
func TestAdopts_the_lease_of_another_library_where_others_wait(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	held := mustLock(t, other.Mutex("waited for"))
	c, _ := ms.client()
	got := make(chan *redlock.Lease)
	go func() {
		lease, err := c.Mutex("waited for").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	ms.awaitQueued("waited for", 1)
	held.Unlock(ctx)
	for _, m := range ms.nodes {
		m.deliver()
	}
	won := <-got
	for _, m := range ms.nodes {
		m.run(wire.Acquire("orders", "another library's", time.Second))
	}

	lease, err := c.Mutex("orders").Adopt(ctx, "another library's")

	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
	won.Unlock(ctx)
}

func TestAdopt_refuses_what_it_cannot_Adopt(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	const reader = "c/nnnnnnnnnnnnnnnn/1:0"
	for what, adopt := range map[string]func() (*redlock.Lease, error){
		"value: must not be empty":        func() (*redlock.Lease, error) { return c.Mutex("a").Adopt(ctx, "") },
		"value: must not be empty ":       func() (*redlock.Lease, error) { return c.RWMutex("a").Adopt(ctx, "") },
		"value: must not be empty  ":      func() (*redlock.Lease, error) { return c.Semaphore("a", 1).Adopt(ctx, "") },
		`"` + reader + `": is a reader's`: func() (*redlock.Lease, error) { return c.RWMutex("a").Adopt(ctx, reader) },
		"0 permits":                       func() (*redlock.Lease, error) { return c.Semaphore("a", 0).Adopt(ctx, reader) },
		"no names":                        func() (*redlock.Lease, error) { return c.Multi(nil).Adopt(ctx, reader) },
	} {
		if _, err := adopt(); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(what)) {
			t.Errorf("error %v, want one that says %q", err, what)
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

// adopting is how the lease of each of kinds is taken up again.
var adopting = map[string]func(c *redlock.Client, value string) (*redlock.Lease, error){
	"plain": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Mutex("plain").Adopt(ctx, value)
	},
	"fenced": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Mutex("fenced", redlock.Fenced()).Adopt(ctx, value)
	},
	"fair": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Mutex("fair", redlock.Fair()).Adopt(ctx, value)
	},
	"fair, fenced": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Mutex("fair, fenced", redlock.Fair(), redlock.Fenced()).Adopt(ctx, value)
	},
	"multi": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Multi(multiNames("multi")).Adopt(ctx, value)
	},
	"multi, fenced": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Multi(multiNames("multi, fenced"), redlock.Fenced()).Adopt(ctx, value)
	},
	"write": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.RWMutex("write").Adopt(ctx, value)
	},
	"read": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.RWMutex("read").RAdopt(ctx, value)
	},
	"semaphore of 1": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Semaphore("semaphore of 1", 1).Adopt(ctx, value)
	},
	"semaphore of 5": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Semaphore("semaphore of 5", 5).Adopt(ctx, value)
	},
	"semaphore, fenced": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Semaphore("semaphore, fenced", 5, redlock.Fenced()).Adopt(ctx, value)
	},
	"election": func(c *redlock.Client, value string) (*redlock.Lease, error) {
		return c.Election("election").Adopt(ctx, value)
	},
}

func TestReal_adopt_of_every_kind(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		crashed, restarted := dial(t, addrs, redlock.WithTTL(time.Minute)), dial(t, addrs)
		for _, k := range kinds() {
			t.Run(k.name, func(t *testing.T) {
				before := k.holds(t, crashed) // and never heard of again

				lease, err := adopting[k.name](restarted, before.Value())

				if err != nil {
					t.Fatal(err)
				}
				if lease.Value() != before.Value() || lease.Shared() != before.Shared() || !lease.Valid() {
					t.Errorf("adopted %v, shared %v; want %v, shared %v", lease, lease.Shared(), before, before.Shared())
				}
				anew := k.name == "semaphore, fenced" // others count beside it
				if got, was := lease.Token(), before.Token(); got != was && !anew || anew && got <= was {
					t.Errorf("the token %d was %d", got, was)
				}
				k.isRefused(t, restarted)
				if err := lease.Extend(ctx, 2*second); err != nil {
					t.Error(err)
				}
				unlocks(t, lease)
				next := k.holds(t, restarted)
				if lease.Token() > 0 && next.Token() <= lease.Token() {
					t.Errorf("the token %d after %d", next.Token(), lease.Token())
				}
				unlocks(t, next)
			})
		}
	})
}

// What a majority has forgotten is not adopted, of no kind; what it keeps is, and is
// put back at the others.
func TestReal_adopt_of_every_kind_with_a_majority(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	crashed, restarted := masters.client(t, redlock.WithTTL(time.Minute)), masters.client(t)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for lost, want := range map[int]error{2: nil, 3: redlock.ErrNotHeld} {
				masters.mustKeepNothing(t)
				before := k.holds(t, crashed)
				eventually(t, "all have it", func() bool { return len(masters.without(t, before.Value())) == 0 })
				for _, s := range masters[:lost] {
					for _, key := range keysOf(t, s) {
						if !staysForAWeek(key) {
							do(t, s, "DEL", key)
						}
					}
				}

				lease, err := adopting[k.name](restarted, before.Value())

				mustBe(t, err, want)
				if lease == nil {
					before.Release() // it finds what is left of it
					continue
				}
				eventually(t, "all have it again", func() bool {
					if err := lease.Extend(ctx, 2*second); err != nil {
						t.Fatal(err)
					}
					return len(masters.without(t, before.Value())) == 0
				})
				unlocks(t, lease)
			}
		})
	}
}

// without returns the masters that do not store a value, under whatever key.
func (ms realMasters) without(t testing.TB, value string) (those []int) {
	t.Helper()
	for i, s := range ms {
		if !slices.ContainsFunc(keysOf(t, s), func(key string) bool { return holds(t, s, key, value) }) {
			those = append(those, i)
		}
	}
	return those
}

// holds reports whether a key has a value, or a hash has it, alone or behind slots.
func holds(t testing.TB, s *redistest.Server, key, value string) bool {
	t.Helper()
	var all []any
	switch do(t, s, "TYPE", key) {
	case "string":
		all = []any{do(t, s, "GET", key)}
	case "hash":
		all = do(t, s, "HVALS", key).([]any)
	}
	return slices.ContainsFunc(all, func(one any) bool {
		has, _ := one.([]byte)
		return string(has) == value || strings.HasSuffix(string(has), " "+value)
	})
}

func TestReal_adopt_of_what_somebody_else_has(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	rw := c.RWMutex("rw")
	r := mustRLock(t, rw)
	unlocks(t, r)
	w, err := rw.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rw.RAdopt(ctx, r.Value())
	mustBe(t, err, redlock.ErrTaken)
	unlocks(t, w)
	r = mustRLock(t, rw)
	_, err = rw.Adopt(ctx, w.Value())
	mustBe(t, err, redlock.ErrTaken)
	_, err = rw.RAdopt(ctx, w.Value()) // there is room for one reader more, but it was not there
	mustBe(t, err, redlock.ErrNotHeld)
	if !r.Valid() {
		t.Error("a failed Adopt has taken the lock away")
	}

	two := multiNames("multi")[:2]
	many, err := c.Multi(two).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, many)
	masters.mustBeFreeSoon(t, two[1])
	theirs := lock(t, c.Mutex(two[1]))
	_, err = c.Multi(two).Adopt(ctx, many.Value())
	mustBe(t, err, redlock.ErrTaken)
	unlocks(t, theirs)
}

// A writer that ended while it was being downgraded is a reader at some masters, and
// becomes one at the others.
func TestReal_adopt_of_a_downgraded_writer(t *testing.T) {
	masters := startMasters(t, 3)
	crashed, c := masters.client(t, redlock.WithTTL(time.Minute)), masters.client(t)
	before, err := crashed.RWMutex("rw").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return len(masters.without(t, before.Value())) == 0 })
	down := wire.ReadWriteOf("", "rw").ExtendReader(before.Value(), time.Minute)
	do(t, masters[0], "EVAL", append([]any{down.Script.Source, len(down.Keys)}, anyOf(down.Keys, down.Args)...)...)

	lease, err := c.RWMutex("rw").RAdopt(ctx, before.Value())

	if err != nil {
		t.Fatal(err)
	}
	if !lease.Shared() {
		t.Error("a writer")
	}
	unlocks(t, mustRLock(t, c.RWMutex("rw"))) // and others may read
	_, err = c.RWMutex("rw").TryLock(ctx)
	mustBe(t, err, redlock.ErrTaken)
	unlocks(t, lease)
}

// anyOf returns all strings as arguments of a command.
func anyOf(lists ...[]string) (all []any) {
	for _, list := range lists {
		for _, one := range list {
			all = append(all, one)
		}
	}
	return all
}

func TestReal_adopt_of_permits_of_another_number(t *testing.T) {
	masters := startMasters(t, 3)
	crashed, c := masters.client(t, redlock.WithTTL(time.Minute)), masters.client(t)
	before, err := crashed.Semaphore("sem", 4).Acquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Semaphore("sem", 5).Adopt(ctx, before.Value())
	mustBe(t, err, redlock.ErrPermits)
	if err := c.Semaphore("sem", 4).Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}

	lease, err := c.Semaphore("sem", 3).Adopt(ctx, before.Value()) // it may have permits that there are no more

	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Extend(ctx, 2*second); err != nil {
		t.Error(err)
	}
	do(t, masters[0], "DEL", "redlock:permits:sem", "redlock:slots:sem", "redlock:owners:sem", "redlock:held:sem")
	if err := lease.Extend(ctx, 2*second); err != nil {
		t.Error(err)
	}
	eventually(t, "all have the new number, and by which Resize", func() bool {
		sizes := masters.distinct(t, "redlock:permits:sem")
		return len(sizes) == 1 && strings.HasPrefix(sizes[0], "3 ")
	})
	unlocks(t, lease)
}

// Where masters do not answer that may know the permits, they may still be held.
func TestReal_adopt_of_permits_that_silent_masters_may_know(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	crashed, c := masters.client(t, redlock.WithTTL(time.Hour)), masters.client(t, redlock.WithNodeTimeout(second))
	before, err := crashed.Semaphore("sem", 4).Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return len(masters.without(t, before.Value())) == 0 })
	for i, want := range []error{redlock.ErrNoQuorum, redlock.ErrNoQuorum, redlock.ErrNotHeld} {
		do(t, masters[2+i], "DEL", "redlock:slots:sem", "redlock:owners:sem", "redlock:held:sem")
		for _, s := range masters[:2] {
			s.Kill()
		}
		_, err := c.Semaphore("sem", 4).Adopt(ctx, before.Value())
		mustBe(t, err, want)
	}
}

// A permit that is adopted has a token above all that was handed out before, also
// beside it, and below all that are handed out later.
func TestReal_adopt_of_a_fenced_permit_counts_anew(t *testing.T) {
	masters := startMasters(t, 3)
	for i, s := range masters {
		do(t, s, "SET", "redlock:token:sem", uint64(1)<<48+uint64(5*i)) // above all clocks
	}
	crashed, c := masters.client(t, redlock.WithTTL(time.Minute)), masters.client(t)
	sem := c.Semaphore("sem", 3, redlock.Fenced())
	before, err := crashed.Semaphore("sem", 3, redlock.Fenced()).Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	var tokens handedOut
	tokens.take(t, before.Token(), 0)
	for range 5 {
		beside, err := sem.Acquire(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		tokens.take(t, beside.Token(), tokens.now())
		adopted, err := sem.Adopt(ctx, before.Value())
		if err != nil {
			t.Fatal(err)
		}
		tokens.take(t, adopted.Token(), tokens.now())
		unlocks(t, beside)
	}
}

// A Resize that few masters have heard of is not ours to overrule: what is put back is
// not said to be as new as that.
func TestReal_adopt_of_permits_does_not_take_over_the_order_of_another_number(t *testing.T) {
	masters := startMasters(t, 5)
	crashed, c := masters.client(t, redlock.WithTTL(time.Minute)), masters.client(t)
	before, err := crashed.Semaphore("sem", 4).Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return len(masters.without(t, before.Value())) == 0 })
	do(t, masters[0], "SET", "redlock:permits:sem", "5 99", "PX", 600_000)
	do(t, masters[1], "DEL", "redlock:permits:sem", "redlock:slots:sem", "redlock:owners:sem", "redlock:held:sem")

	lease, err := c.Semaphore("sem", 4).Adopt(ctx, before.Value())

	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it again", func() bool {
		if err := lease.Extend(ctx, 2*second); err != nil {
			t.Fatal(err)
		}
		return len(masters.without(t, before.Value())) == 0
	})
	if size := do(t, masters[1], "GET", "redlock:permits:sem"); string(size.([]byte)) != "4" {
		t.Errorf("%s permits", size)
	}
	unlocks(t, lease)
}

// Where the masters are asked before the value is extended, the error says what they
// answered, too.
func TestAdopt_says_which_masters_did_not_tell(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	for _, s := range masters[:2] {
		s.Kill()
	}
	_, fenced := c.Mutex("orders", redlock.Fenced()).Adopt(ctx, "crashed/aaaa/1:0")
	_, multi := c.Multi([]string{"orders", "a"}, redlock.Fenced()).Adopt(ctx, "crashed/aaaa/1:0")
	_, permits := c.Semaphore("orders", 3).Adopt(ctx, "crashed/aaaa/1:0")
	for name, err := range map[string]error{"orders": fenced, "a,orders": multi, "orders (permits)": permits} {
		e, ok := err.(*redlock.Error)
		if !ok || e.Op != "adopt" || e.Name != strings.TrimSuffix(name, " (permits)") || e.Err != redlock.ErrNoQuorum {
			t.Errorf("%s: %v", name, err)
			continue
		}
		mustName(t, err, []string{"1 of 3 answered"}) // and was not asked to grant anything
		silent := 0
		for _, v := range e.Votes {
			if v.Err != nil {
				silent++
			}
		}
		if silent != 2 {
			t.Errorf("%s: %d of the masters are said to be silent: %v", name, silent, err)
		}
	}
}
