package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// aGroup is a group of three masters in this process, with a client that goes by the map that they tell.
type aGroup struct {
	*masters
	client *redlock.Client
	links  []*link
	guard  *guard.Guard
}

func newGroup(t *testing.T, name, text string, opts ...redlock.Option) *aGroup {
	t.Helper()
	a := &aGroup{masters: newMasters(t, 3)}
	a.client, a.links = a.masters.client(opts...)
	knows := guard.NewSpread(guard.GroupID{Name: name})
	a.guard = guard.New(guard.Config{Hold: time.Second}, a.clk, knows)
	redlock.In(a.client, name, knows)
	a.tells(text)
	return a
}

// tells has a master tell that map.
func (a *aGroup) tells(text string) {
	a.guard.Look(guard.Evidence{RunID: "run", Marker: guard.Marker{RunID: "run", Group: guard.GroupID{Map: text}}, Sent: a.guard.Now()})
}

// tellsBefore has a master tell that map when the masters are asked for op.
func (a *aGroup) tellsBefore(op wire.Op, text string) {
	var once sync.Once
	for _, l := range a.links {
		l.before = func(cmd *wire.Command) {
			if cmd.Op == op {
				once.Do(func() { a.tells(text) })
			}
		}
	}
}

// groupsOf makes Groups of these.
func groupsOf(t *testing.T, all ...*aGroup) *redlock.Groups {
	t.Helper()
	var clients []*redlock.Client
	for _, a := range all {
		clients = append(clients, a.client)
	}
	g, err := redlock.NewGroups(clients...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// nameBy finds a name that has these owners by these lists of groups.
func nameBy(t *testing.T, owners map[string]string) string {
	t.Helper()
	for i := range 10_000 {
		name := fmt.Sprint("orders-", i)
		fits := true
		for groups, owner := range owners {
			fits = fits && spread.Highest(strings.Split(groups, ","), name) == owner
		}
		if fits {
			return name
		}
	}
	t.Fatalf("no name has the owners %v", owners)
	return ""
}

// S83: the masters are asked by a map, and one of them tells the next one before it answers.
func TestS83_what_is_granted_when_the_map_has_changed_is_no_lease(t *testing.T) {
	for what, take := range map[string]func(*redlock.Client) (*redlock.Lease, error){
		"one name": func(c *redlock.Client) (*redlock.Lease, error) { return c.Mutex("orders").TryLock(ctx) },
		"a waiter": func(c *redlock.Client) (*redlock.Lease, error) { return c.Mutex("orders").Lock(ctx) },
		"cached": func(c *redlock.Client) (*redlock.Lease, error) {
			return c.Mutex("orders", redlock.Cached()).TryLock(ctx)
		},
	} {
		a := newGroup(t, "a", "2:a")
		a.tellsBefore(wire.OpAcquire, "3:a>b")
		if _, err := take(a.client); !errors.Is(err, redlock.ErrMoved) || !strings.Contains(err.Error(), "moves to b") {
			t.Errorf("%s: %v, want %v", what, err, redlock.ErrMoved)
		}
		eventually(t, "the masters forget it", func() bool { return strings.Join(a.holders("orders"), "") == "" })
		asked := a.nodes[0].count(wire.OpAcquire)
		if _, err := take(a.client); !errors.Is(err, redlock.ErrMoved) || a.nodes[0].count(wire.OpAcquire) != asked {
			t.Errorf("%s, afterwards: %v, and the masters are asked", what, err)
		}
	}
}

// S83: a lease that is renewed when the map has changed ends when it would have ended before.
func TestS83_a_renewal_when_the_map_has_changed_does_not_count(t *testing.T) {
	a := newGroup(t, "a", "2:a")
	lease, err := a.client.Mutex("orders", redlock.NoRenew()).TryLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a.pass(500 * time.Millisecond)
	ends := lease.Remaining()
	a.tellsBefore(wire.OpExtend, "3:a>b")
	if err := lease.Extend(ctx, time.Second); !errors.Is(err, redlock.ErrMoved) {
		t.Errorf("Extend: %v, want %v", err, redlock.ErrMoved)
	}
	if got := lease.Remaining(); got > ends {
		t.Errorf("the lease lasts for %v, and for %v before", got, ends)
	}
	a.pass(ends)
	if lease.Valid() {
		t.Error("the lease is valid")
	}
}

// Names that stay are not disturbed.
func TestGroups_a_lease_goes_on_when_other_names_move(t *testing.T) {
	stays := nameBy(t, map[string]string{"a,b": "a", "a,c": "a"})
	a := newGroup(t, "a", "2:a,b")
	lease := mustLock(t, a.client.Mutex(stays))
	a.tellsBefore(wire.OpExtend, "3:a,b>a,c")
	if err := lease.Extend(ctx, time.Second); err != nil {
		t.Errorf("Extend: %v", err)
	}
	lease.Unlock(ctx)
}

// Lock waits for the new group of its name, and leaves the old one at once: that may be gone. It is woken
// by what any master tells.
func TestGroups_a_waiter_follows_its_name(t *testing.T) {
	for what, maps := range map[string][]string{
		"slowly":                           {"3:a>b", "4:b"},
		"when its process has been asleep": {"4:b"},
		"through a third group":            {"4:c", "5:c>b", "6:b"},
	} {
		a, b, c := newGroup(t, "a", "2:a"), newGroup(t, "b", ""), newGroup(t, "c", "")
		g := groupsOf(t, c, a, b)
		busy, _ := a.masters.client()
		mustLock(t, busy.Mutex("orders"))
		mustLock(t, mustHave(b.masters.client()).Mutex("other"))
		mustLock(t, mustHave(c.masters.client()).Mutex("orders"))
		got := make(chan error, 1)
		go func() {
			lease, err := g.Mutex("orders").Lock(ctx)
			if err == nil {
				err = lease.Unlock(ctx)
			}
			got <- err
		}()
		eventually(t, "it waits", func() bool { return a.nodes[0].count(wire.OpAsk) > 0 })
		for i, text := range maps {
			if len(got) > 0 {
				t.Fatalf("%s, map %s: it does not wait any more: %v", what, text, <-got)
			}
			[]*aGroup{b, c, a}[i%3].tells(text)
			eventually(t, "it leaves the old group", func() bool {
				a.nodes[0].mu.Lock()
				defer a.nodes[0].mu.Unlock()
				return len(a.nodes[0].queues["orders"]) == 0
			})
		}
		b.tells(maps[len(maps)-1])
		eventually(t, "it has its lock", func() bool {
			a.clk.Add(time.Millisecond)
			b.clk.Add(time.Millisecond)
			c.clk.Add(time.Millisecond)
			return len(got) > 0
		})
		if err := <-got; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := g.Waiting(); n != 0 {
			t.Errorf("%s: %d calls wait, want none", what, n)
		}
	}
}

// The observers count who waits: each LockWaiting ends in LockMoved, or in an event with Waited, by the same one.
func TestGroups_tell_of_each_wait_that_it_began_and_ended(t *testing.T) {
	locks := func(g *redlock.Groups) (*redlock.Lease, error) { return g.Mutex("orders").Lock(ctx) }
	tries := func(g *redlock.Groups) (*redlock.Lease, error) {
		return g.Mutex("orders", redlock.Cached()).TryLock(ctx)
	}
	leaves := []string{"waiting false", "moved false"}
	for _, c := range []struct {
		what  string
		take  func(g *redlock.Groups) (*redlock.Lease, error)
		begin func(a, b *aGroup)
		then  string   // the map that a tells when the call waits
		told  []string // a's observer
	}{
		{"its name has left", locks, func(a, _ *aGroup) { a.tellsBefore(wire.OpAcquire, "4:b") }, "", nil},
		{"its name leaves", locks, func(a, _ *aGroup) { mustLock(t, mustHave(a.masters.client()).Mutex("orders")) }, "4:b", leaves},
		{"its group is gone", tries, func(a, b *aGroup) {
			for _, l := range a.links {
				l.set(down)
				l.before = func(*wire.Command) { b.tells("4:b") }
			}
		}, "", leaves},
	} {
		var mu sync.Mutex
		told := map[string][]string{}
		observer := func(group string) redlock.Option {
			return redlock.WithObserver(func(e redlock.Event) {
				mu.Lock()
				defer mu.Unlock()
				told[group] = append(told[group], fmt.Sprint(e.Kind, " ", e.Waited))
			})
		}
		a, b := newGroup(t, "a", "2:a", observer("a")), newGroup(t, "b", "2:a", observer("b"))
		g := groupsOf(t, a, b)
		c.begin(a, b)
		got := make(chan error, 1)
		go func() { _, err := c.take(g); got <- err }()
		eventually(t, "it has its lock", func() bool {
			mu.Lock()
			waits := len(told["a"]) > 0
			mu.Unlock()
			if waits && c.then != "" {
				a.tells(c.then)
			}
			a.clk.Add(time.Millisecond)
			return len(got) > 0
		})
		noError(t, <-got)
		mu.Lock()
		if !slices.Equal(told["a"], c.told) || !slices.Equal(told["b"], []string{"acquired false"}) {
			t.Errorf("%s: the observers were told %q", c.what, told)
		}
		mu.Unlock()
	}
}

func mustHave(c *redlock.Client, _ []*link) *redlock.Client { return c }

// own is a context that no other knows how to follow without a goroutine.
type own struct{ context.Context }

func (own) Done() <-chan struct{} { return make(chan struct{}) }

// A call that is over leaves nothing behind: TestMain looks for goroutines.
func TestGroups_keep_nothing_of_a_call_that_is_over(t *testing.T) {
	a := newGroup(t, "a", "2:a")
	g := groupsOf(t, a)
	for range 3 {
		lease, err := g.Mutex("orders").Lock(own{ctx})
		if err != nil {
			t.Fatal(err)
		}
		a.tells("2:a")
		if err := lease.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
	if n := g.Waiting(); n != 0 {
		t.Errorf("%d calls wait, want none", n)
	}
}

// The table of whether Lock waits for names that are in no group, or in several: only if they will be in one
// of which there is a client. It knows which of two maps is newer, whoever tells it.
func TestGroups_Lock_waits_only_for_names_that_come_together(t *testing.T) {
	inA := nameBy(t, map[string]string{"a,b": "a", "b,c": "b"})
	alsoA := nameBy(t, map[string]string{"a,b": "a", "b,c": "c"})
	inB := nameBy(t, map[string]string{"a,b": "b", "a,c": "a", "b,c": "b"})
	for _, c := range []struct {
		why   string
		maps  [2]string // that a and b tell
		names []string
		waits bool
		says  string
	}{
		{"no map", [2]string{}, []string{inA}, false, "no master has told a map"},
		{"it moves to a group with a client", [2]string{"3:a>b"}, []string{inA}, true, ""},
		{"the new group has told it alone", [2]string{"2:a", "3:a>b"}, []string{inA}, true, ""},
		{"it moves to another group", [2]string{"3:a>d"}, []string{inA}, false, "moves to d"},
		{"it is in another group", [2]string{"3:d"}, []string{inA}, false, "group d, of which there is no client here"},
		{"several move together", [2]string{"3:a>b"}, []string{inA, inB}, true, ""},
		{"they are apart", [2]string{"2:a,b"}, []string{inA, inB}, false, fmt.Sprintf("%q is in a", inA)},
		{"they will be apart", [2]string{"3:a,b>b,c"}, []string{inA, alsoA}, false, "moves to"},
		{"they come together", [2]string{"3:a,b>b,d"}, []string{nameBy(t, map[string]string{"a,b": "a", "b,d": "b"}), nameBy(t, map[string]string{"a,b": "b", "b,d": "b"})}, true, ""},
	} {
		a, b := newGroup(t, "a", c.maps[0]), newGroup(t, "b", c.maps[1])
		g := groupsOf(t, a, b)
		slices.Sort(c.names)
		m := g.Multi(c.names)
		if len(c.names) == 1 {
			m = g.Mutex(c.names[0])
		}
		limited, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		_, err := m.Lock(limited)
		cancel()
		if waited := errors.Is(err, context.DeadlineExceeded); waited != c.waits || err == nil || !strings.Contains(err.Error(), redlock.ErrMoved.Error()) {
			t.Errorf("%s: %v; want it to wait: %v", c.why, err, c.waits)
		}
		if _, err := m.TryLock(ctx); !errors.Is(err, redlock.ErrMoved) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: TryLock: %v, want that it says %q", c.why, err, c.says)
		}
	}
}

// A waiter that is told to leave is told why, and not that its context has ended.
func TestGroups_a_waiter_whose_name_leaves_all_groups_is_told_so(t *testing.T) {
	a := newGroup(t, "a", "2:a")
	g := groupsOf(t, a)
	mustLock(t, mustHave(a.masters.client()).Mutex("orders"))
	got := make(chan error, 1)
	go func() { _, err := g.Mutex("orders").Lock(ctx); got <- err }()
	eventually(t, "it waits", func() bool { return a.nodes[0].count(wire.OpAsk) > 0 })
	a.tells("3:a>d")
	if err := <-got; !errors.Is(err, redlock.ErrMoved) || errors.Is(err, context.Canceled) {
		t.Errorf("Lock: %v, want %v", err, redlock.ErrMoved)
	}
}

// Clients that cannot be groups of one map are refused.
func TestNewGroups_refuses_what_is_no_group(t *testing.T) {
	a, again := newGroup(t, "a", "2:a"), newGroup(t, "a", "2:a")
	plain, _ := newMasters(t, 3).client()
	other := newGroup(t, "b", "2:a")
	other.client = mustHave(other.masters.client(redlock.WithKeyPrefix("app:")))
	redlock.In(other.client, "b", guard.NewSpread(guard.GroupID{Name: "b"}))
	for want, clients := range map[string][]*redlock.Client{
		"no clients":             {},
		"client 2 is nil":        {a.client, nil},
		"must come from Dial":    {plain},
		`group "a": two clients`: {a.client, again.client},
		`WithKeyPrefix("app:")`:  {a.client, other.client},
	} {
		if _, err := redlock.NewGroups(clients...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

// The map may have changed while the clients were at rest. A group that hangs costs a call one node timeout.
func TestGroups_end_the_rest_of_all_clients_in_parallel(t *testing.T) {
	var clients []*redlock.Client
	var all []*looked
	for _, name := range []string{"a", "b", "c"} {
		clk, masters, c := lookedAt(t)
		redlock.In(c, name, guard.NewSpread(guard.GroupID{Name: name}))
		restsAll(t, clk, masters)
		clients, all = append(clients, c), append(all, masters...)
	}
	g, err := redlock.NewGroups(clients...)
	noError(t, err)
	failed := make(chan error, 1)
	go func() {
		_, err := g.Mutex("orders").TryLock(ctx)
		failed <- err
	}()

	for _, q := range asked(t, all, wire.OpRead) {
		q.answer(wire.Reply{Value: []any{}})
	}

	mustBe(t, arrival(t, "the error", failed), redlock.ErrMoved) // no master tells a map
}

// lookedGroups are two groups of masters that are looked at, a and b, which know that they have the names.
func lookedGroups(t *testing.T) (g *redlock.Groups, masters map[string][]*looked, clocks map[string]*clock.Mock) {
	t.Helper()
	return lookedGroupsBy(t, "2:a,b")
}

// lookedGroupsBy are the groups a and b, which know that map.
func lookedGroupsBy(t *testing.T, known string) (g *redlock.Groups, masters map[string][]*looked, clocks map[string]*clock.Mock) {
	t.Helper()
	var clients []*redlock.Client
	masters, clocks = map[string][]*looked{}, map[string]*clock.Mock{}
	told, err := spread.Parse(known)
	noError(t, err)
	for _, name := range []string{"a", "b"} {
		clk, ms, c := lookedAt(t)
		knows := guard.NewSpread(guard.GroupID{Name: name})
		redlock.In(c, name, knows)
		knows.Learn(told)
		clients, masters[name], clocks[name] = append(clients, c), ms, clk
	}
	g, err = redlock.NewGroups(clients...)
	noError(t, err)
	return g, masters, clocks
}

// L89: only the masters of another group can tell a call that the group in which it waits has lost the name.
func TestL89_clients_do_not_rest_while_a_call_waits_in_a_group_that_cannot_be_reached(t *testing.T) {
	g, masters, clocks := lookedGroups(t)
	rests := func() bool {
		clocks["a"].Add(10 * time.Second)
		return masters["a"][0].idle()
	}
	cut := func(why error) {
		for _, m := range masters["b"] {
			m.mu.Lock()
			m.keeps = why
			m.mu.Unlock()
		}
	}
	within, giveUp := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		_, err := g.Mutex(nameBy(t, map[string]string{"a,b": "b"})).Lock(within)
		failed <- err
	}()
	asked(t, masters["b"], wire.OpAcquire) // they do not answer

	if !rests() {
		t.Error("the client of a group that nobody uses does not rest")
	}
	cut(errors.New("down"))
	looks := masters["a"][0].timesLooked()
	if rests() || masters["a"][0].timesLooked() == looks {
		t.Error("the only client that can learn of a move rests")
	}
	answers(t, masters["a"], wire.OpRead, []any{})
	giveUp()
	mustBe(t, arrival(t, "the error", failed), context.Canceled)
	if rests(); !rests() {
		t.Error("it does not rest again")
	}
}

// A client that is not at rest knows the newest map: its heartbeats and votes tell it.
func TestGroups_that_are_not_used_rest_on(t *testing.T) {
	g, masters, clocks := lookedGroups(t)
	restsAll(t, clocks["b"], masters["b"])
	got := make(chan *redlock.Lease, 1)
	try := func(group string) {
		m := g.Mutex(nameBy(t, map[string]string{"a,b": group}), redlock.NoRenew())
		go func() { got <- leased(t)(m.TryLock(ctx)) }()
	}

	try("a")
	answers(t, masters["a"], wire.OpAcquire, "OK")
	arrival(t, "the lease", got).Release()
	answers(t, masters["a"], wire.OpRelease, int64(1))
	for _, m := range masters["b"] {
		if m.mustNotBeAsked(t); m.timesLooked() != 0 {
			t.Error("a master of a group that nobody uses is looked at")
		}
	}

	try("b")
	answers(t, masters["b"], wire.OpRead, []any{})
	answers(t, masters["b"], wire.OpAcquire, "OK")
	arrival(t, "the lease", got).Release()
	answers(t, masters["b"], wire.OpRelease, int64(1))
}

// L91: work under a lock of one group goes on for its grace. What is held in the other group is free at once, and
// so is what else is held in its own.
func TestL91_groups_do_not_wait_for_the_work_in_another(t *testing.T) {
	a, b := newGroup(t, "a", "2:a,b"), newGroup(t, "b", "2:a,b")
	g := groupsOf(t, a, b)
	inA, busy, inB := nameBy(t, map[string]string{"a,b": "a", "a,c": "a"}), nameBy(t, map[string]string{"a,b": "a", "a,c": "c"}), nameBy(t, map[string]string{"a,b": "b", "a,c": "a"})
	working, end := make(chan struct{}), make(chan struct{})
	stops := g.Mutex(busy, redlock.StopWithin(400*time.Millisecond, func(error) {}))
	worked := make(chan error, 1)
	go func() {
		worked <- redlock.Do(ctx, stops, func(context.Context) error {
			close(working)
			<-end
			return nil
		})
	}()
	select {
	case <-working:
	case err := <-worked:
		t.Fatal(err)
	}
	mustLock(t, g.Mutex(inA))
	mustLock(t, g.Mutex(inB))
	ends := nameBy(t, map[string]string{"a,b": "b", "a,c": "c"})
	work := mustLock(t, g.Mutex(ends, redlock.StopWithin(400*time.Millisecond, func(error) {})))
	closed := make(chan error, 1)
	go func() { closed <- g.Close() }()
	free := func(group *aGroup, name string) {
		t.Helper()
		eventually(t, "it is free", func() bool {
			group.nodes[0].mu.Lock()
			defer group.nodes[0].mu.Unlock()
			return group.nodes[0].keys[name].value == ""
		})
	}
	free(a, inA)
	free(b, inB)
	mustBe(t, work.Unlock(ctx), redlock.ErrClosed)
	free(b, ends) // although the other work goes on
	close(end)
	noError(t, arrival(t, "the end of Close", closed))
}

// A handle of Groups takes what it is a handle of: to read, to write, or so many permits.
func TestGroups_ask_for_what_the_handle_is_of(t *testing.T) {
	name := nameBy(t, map[string]string{"a,b": "b"})
	for what, c := range map[string]struct {
		take func(context.Context, *redlock.Groups) (*redlock.Lease, error)
		says func(*wire.Command) bool
	}{
		"read": {
			func(ctx context.Context, g *redlock.Groups) (*redlock.Lease, error) {
				return g.RWMutex(name).RLock(ctx)
			},
			func(cmd *wire.Command) bool { return cmd.Script == wire.ScriptRead },
		},
		"write": {
			func(ctx context.Context, g *redlock.Groups) (*redlock.Lease, error) { return g.RWMutex(name).Lock(ctx) },
			func(cmd *wire.Command) bool { return cmd.Script == wire.ScriptWrite },
		},
		"2 of 5 permits": {
			func(ctx context.Context, g *redlock.Groups) (*redlock.Lease, error) {
				return g.Semaphore(name, 5).Acquire(ctx, 2)
			},
			func(cmd *wire.Command) bool {
				return cmd.Script == wire.ScriptPermit && cmd.Args[3] == "5" && cmd.Args[4] == "2"
			},
		},
	} {
		g, masters, _ := lookedGroups(t)
		within, giveUp := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() { defer close(over); c.take(within, g) }()
		for _, q := range asked(t, masters["b"], wire.OpAcquire) {
			if !c.says(q.cmd) {
				t.Errorf("%s: asked %q", what, append(q.cmd.Keys, q.cmd.Args...))
			}
		}
		giveUp()
		arrival(t, "the end of the call", over)
	}
}

// What is no longer waited for makes room, and nobody else is forgotten: three wait, and those that came first
// go first.
func TestGroups_tell_who_waits_though_others_have_gone(t *testing.T) {
	a := newGroup(t, "a", "2:a")
	g := groupsOf(t, a)
	mustLock(t, mustHave(a.masters.client()).Mutex("orders"))
	var got []chan error
	var leave []context.CancelFunc
	for i := range 3 {
		within, giveUp := context.WithCancel(ctx)
		leave, got = append(leave, giveUp), append(got, make(chan error, 1))
		go func() {
			_, err := g.Mutex("orders").Lock(within)
			got[i] <- err
		}()
		eventually(t, "it waits", func() bool { return g.Waiting() == i+1 })
	}
	for i, left := range []int{2, 1} {
		leave[i]()
		mustBe(t, arrival(t, "the error", got[i]), context.Canceled)
		if n := g.Waiting(); n != left {
			t.Fatalf("%d calls wait, want %d", n, left)
		}
	}
	a.tells("3:a>d")
	mustBe(t, arrival(t, "the error", got[2]), redlock.ErrMoved)
	leave[2]()
}

// All that wait leave, and not only the first.
func TestGroups_all_waiters_follow_their_names(t *testing.T) {
	a := newGroup(t, "a", "2:a")
	g := groupsOf(t, a)
	got := make(chan error, 3)
	for i := range 3 {
		name := fmt.Sprint("orders-", i)
		mustLock(t, mustHave(a.masters.client()).Mutex(name))
		go func() { _, err := g.Mutex(name).Lock(ctx); got <- err }()
	}
	eventually(t, "all wait", func() bool { return a.nodes[0].count(wire.OpAsk) > 2 })
	a.tells("3:a>d")
	for range 3 {
		mustBe(t, arrival(t, "the error", got), redlock.ErrMoved)
	}
}

// A group that is out of reach has been asked, and nobody says that the name has left it: it is not asked again.
func TestGroups_ask_a_group_that_is_down_once(t *testing.T) {
	g, masters, _ := lookedGroups(t)
	failed := make(chan error, 1)
	go func() {
		_, err := g.Mutex(nameBy(t, map[string]string{"a,b": "b"})).TryLock(ctx)
		failed <- err
	}()
	for _, q := range asked(t, masters["b"], wire.OpAcquire) {
		q.answer(wire.Reply{Err: &wire.Error{Op: wire.OpAcquire, Err: node.ErrDown}})
	}
	mustBe(t, arrival(t, "the error", failed), redlock.ErrNoQuorum)
	answers(t, masters["b"], wire.OpRelease, int64(1))
	for _, m := range masters["b"] {
		m.isNotAsked(t)
	}
}

// A call of one group waits until the others have been looked at, too: one of them may know that the name has moved.
func TestGroups_a_call_waits_for_the_looks_of_all_groups(t *testing.T) {
	g, masters, clocks := lookedGroups(t)
	restsAll(t, clocks["a"], masters["a"])
	restsAll(t, clocks["b"], masters["b"])
	within, giveUp := context.WithCancel(ctx)
	over := make(chan struct{})
	latch := g.Latch(nameBy(t, map[string]string{"a,b": "b"}), 2)
	go func() { defer close(over); latch.Arrive(within, "me") }()
	looks := asked(t, masters["a"], wire.OpRead)
	answers(t, masters["b"], wire.OpRead, []any{})
	for _, m := range masters["b"] {
		m.mustNotBeAsked(t)
	}
	for _, q := range looks {
		q.answer(wire.Reply{Value: []any{}})
	}
	asked(t, masters["b"], wire.OpCommit)
	giveUp()
	arrival(t, "the end of the call", over)
}

// What the caller does with its list of names does not matter afterwards.
func TestGroups_Multi_is_of_the_names_that_it_was_made_of(t *testing.T) {
	g, masters, _ := lookedGroups(t)
	names := []string{nameBy(t, map[string]string{"a,b": "b"}), nameBy(t, map[string]string{"a,b": "b", "a,c": "c"})}
	slices.Sort(names)
	want := slices.Clone(names)
	m := g.Multi(names)
	names[0], names[1] = "other", "another"
	within, giveUp := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { defer close(over); m.Lock(within) }()
	for _, q := range asked(t, masters["b"], wire.OpAcquire) {
		if !slices.Contains(q.cmd.Keys, want[0]) || !slices.Contains(q.cmd.Keys, want[1]) {
			t.Errorf("asked for %q, want %q", q.cmd.Keys, want)
		}
	}
	giveUp()
	arrival(t, "the end of the call", over)
}

// Close gives back what is held with StopWithin in every group.
func TestL91_groups_give_back_in_every_group_what_was_worked_under(t *testing.T) {
	a, b := newGroup(t, "a", "2:a,b"), newGroup(t, "b", "2:a,b")
	g := groupsOf(t, a, b)
	inA, inB := nameBy(t, map[string]string{"a,b": "a"}), nameBy(t, map[string]string{"a,b": "b"})
	closed := make(chan error, 1)
	for _, name := range []string{inA, inB} {
		mustLock(t, g.Mutex(name, redlock.StopWithin(100*time.Millisecond, func(error) {})))
	}
	go func() { closed <- g.Close() }()
	eventually(t, "it is closed", func() bool {
		a.clk.Add(time.Millisecond)
		b.clk.Add(time.Millisecond)
		return len(closed) > 0
	})
	noError(t, <-closed)
	for group, name := range map[*aGroup]string{a: inA, b: inB} {
		if held := strings.Join(group.holders(name), ""); held != "" {
			t.Errorf("%s is held by %s", name, held)
		}
	}
}

func TestGroups_no_group_has_no_names(t *testing.T) {
	g := groupsOf(t, newGroup(t, "a", "1:a"))
	if group, err := g.Group(); err == nil {
		t.Errorf("Group of no names: %q", group)
	}
}
