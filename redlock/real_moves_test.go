package redlock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file has operations that are under way, or rest, while their names move to another group.

// withPatience calls f with a context that ends only when something hangs.
func withPatience(f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f(limited)
}

// locksAndUnlocks has a locker take its lock and give it back.
func locksAndUnlocks(l redlock.Locker) error {
	return withPatience(func(ctx context.Context) error {
		lease, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		return lease.Unlock(context.Background())
	})
}

// S83: a waiter is cut off from the group that its name leaves.
func TestReal_S83_a_waiter_leaves_a_group_that_is_out_of_reach(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	g, proxies := all.proxied(t)
	movesTo(t, g, "orders", "a")
	lock(t, all.client(t).Mutex("orders"))
	waits := make(chan error, 1)
	go func() { waits <- locksAndUnlocks(g.Mutex("orders")) }()
	eventually(t, "it is queued", func() bool { return all["a"].queued(t, "orders") })
	for _, p := range proxies["a"] {
		p.Refuse()
		p.Reset()
	}
	all.spread(t, "b")
	noError(t, <-waits)
}

// S83: a process rests while its names move, and knows no map but the one of before.
func TestReal_S83_a_process_that_rested_finds_a_name_that_has_moved(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(realMasters){
		"all are up":       func(realMasters) {},
		"the old one ends": func(a realMasters) { a[0].Kill(); a[1].Kill(); a[2].Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := startGroups(t, "a", "b")
			all.spread(t, "a")
			rests := seam.Option(seam.Seams{Rest: 100 * time.Millisecond}).(redlock.Option)
			var clients []*redlock.Client
			for group, ms := range all {
				clients = append(clients, dial(t, redistest.URLs(ms), append(inGroup(group), redlock.WithNodeTimeout(second/2), rests)...))
			}
			g, err := redlock.NewGroups(clients...)
			noError(t, err)
			noError(t, locksAndUnlocks(g.Mutex("orders")))
			time.Sleep(2 * second) // it rests: its heartbeats, one a second, no longer look
			all.spread(t, "b")
			after(all["a"])
			lease, err := g.Mutex("orders").TryLock(ctx)
			noError(t, err)
			noError(t, lease.Unlock(ctx))
		})
	}
}

// S83: who waits for a latch, or observes an election, is told that it has moved.
func TestReal_S83_waiting_for_what_has_moved_ends(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	g := all.client(t)
	latch, observed := make(chan error, 1), make(chan error, 1)
	go func() { latch <- withPatience(g.Latch("done", 2).Wait) }()
	go func() {
		observed <- withPatience(func(ctx context.Context) error {
			for range g.Election("boss").Observe(ctx) {
			}
			return ctx.Err()
		})
	}()
	all.spread(t, "b")
	mustBe(t, <-latch, redlock.ErrMoved)
	noError(t, <-observed)
}

// L89: they are told as soon as their process knows the new map. A latch is looked at every 5 s only.
func TestReal_L89_waiting_for_what_has_moved_ends_when_that_is_known(t *testing.T) {
	t.Parallel()
	for what, waits := range waitsForBoss {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := startGroups(t, "a", "b")
			all.spread(t, "a")
			g := all.client(t)
			ended := all.waitForBoss(t, g, waits)
			all.spread(t, "b")
			movesTo(t, g, "boss", "b")
			select {
			case err := <-ended:
				mustBe(t, err, redlock.ErrMoved)
				if e := new(redlock.Error); what == "Latch.Wait" && (!errors.As(err, &e) || e.Op != "wait") {
					t.Errorf("it does not say that waiting failed: %v", err)
				}
			case <-time.After(second):
				t.Error("it waits on")
			}
		})
	}
}

// waitForBoss has a process wait for the boss in group a, where another one is it.
func (g realGroups) waitForBoss(t testing.TB, who *redlock.Groups, waits func(context.Context, *redlock.Groups) error) (ended chan error) {
	t.Helper()
	movesTo(t, who, "boss", "a")
	_, err := g.client(t).Election("boss").Campaign(ctx, "x")
	noError(t, err)
	ended = make(chan error, 1)
	go func() { ended <- withPatience(func(ctx context.Context) error { return waits(ctx, who) }) }()
	time.Sleep(second / 4) // it waits
	return ended
}

// waitsForBoss are calls that wait, but not for a lock, and end when the name moves.
var waitsForBoss = map[string]func(ctx context.Context, g *redlock.Groups) error{
	"Campaign": func(ctx context.Context, g *redlock.Groups) error {
		_, err := g.Election("boss").Campaign(ctx, "y")
		return err
	},
	"Latch.Wait": func(ctx context.Context, g *redlock.Groups) error { return g.Latch("boss", 2).Wait(ctx) },
	"Observe": func(ctx context.Context, g *redlock.Groups) error {
		for range g.Election("boss").Observe(ctx) {
		}
		return cmp.Or(ctx.Err(), redlock.ErrMoved)
	},
}

// S83: the process is cut off from the group that the name leaves, and learns that from the other one.
func TestReal_S83_waiting_in_a_group_that_is_out_of_reach_ends(t *testing.T) {
	t.Parallel()
	for what, waits := range waitsForBoss {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := startGroups(t, "a", "b")
			all.spread(t, "a")
			g, proxies := all.proxied(t)
			ended := all.waitForBoss(t, g, waits)
			for _, p := range proxies["a"] {
				p.Refuse()
				p.Reset()
			}
			all.spread(t, "b")
			mustBe(t, arrival(t, "the wait ends", ended), redlock.ErrMoved)
		})
	}
}

// One permit follows its name as several do.
func TestReal_groups_are_followed_by_a_semaphore_for_one_permit(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	jobs := all.client(t).Semaphore("jobs", 2)
	all.spread(t, "b")
	noError(t, withPatience(func(ctx context.Context) error {
		lease, err := jobs.Acquire(ctx, 1)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		return err
	}))
}

// comesTo waits until a request is held. It fails the test if what sends the request ends before.
func comesTo(t testing.TB, held *faultproxy.Hold, ended <-chan error) {
	t.Helper()
	select {
	case <-held.Held():
	case err := <-ended:
		t.Fatalf("it ended before: %v", err)
	case <-time.After(patience):
		t.Fatalf("not within %v: the request is held", patience)
	}
}

// writesMap matches the write of a map with that number by an operator.
func writesMap(number string) faultproxy.Match {
	return func(r faultproxy.Request) bool {
		return len(r.Args) > 4 && r.Args[2] == "redlock:marker" && strings.Contains(r.Args[4], "@"+number+":")
	}
}

// S83: a second operator has looked at the masters before the first has told a map, and goes on when
// that one has waited.
func TestReal_S83_of_two_operators_one_fails(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	all.spread(t, "a", "b")
	by := func(clk clock.Clock, over ...string) (firstOfA *faultproxy.Proxy, begin func() <-chan error) {
		addrs := map[string][]string{}
		for group, ms := range all {
			var proxies []*faultproxy.Proxy
			if addrs[group], proxies = ms.behindProxies(t); group == "a" {
				firstOfA = proxies[0]
			}
		}
		return firstOfA, func() <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := redlock.Spread(ctx, addrs, over, redlock.WithTTL(second), redlock.WithClock(clk))
				done <- err
			}()
			return done
		}
	}
	late, beginLate := by(clock.NewMock(), "a", "b", "c") // who loses no patience with a master that hangs
	stands := late.HoldNext(faultproxy.Requests, writesMap("3"))
	second := beginLate()
	comesTo(t, stands, second)
	early, beginEarly := by(clock.New(), "a")
	moves := early.HoldNext(faultproxy.Requests, faultproxy.Command("SCAN", ""))
	first := beginEarly()
	comesTo(t, moves, first) // it has waited, and takes over what outlives locks
	stands.Release()
	if err := <-second; err == nil || !strings.Contains(err.Error(), "another change") {
		t.Errorf("the second operator: %v", err)
	}
	moves.Release()
	noError(t, <-first)
	if !all["a"].tell(t, "4:a") || !all["b"].tell(t, "4:a") || !all["c"].tell(t, "4:a") {
		t.Error("not all masters tell the map of the first")
	}
	all.spread(t, "a", "b", "c")
}

// S83: what two operators have told some masters each is settled by the next one.
func TestReal_S83_two_maps_of_one_number_are_replaced(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	for i, text := range []string{"3:a>a,b", "3:a>b", "2:a"} {
		told := marker(t, all["a"][i])
		do(t, all["a"][i], "SET", "redlock:marker", strings.Replace(told, "@2:a", "@"+text, 1))
	}
	if err := all.trySpread("a", "b"); err == nil {
		t.Error("it goes on with the smaller map")
	}
	all.spread(t, "b")
	if owner := (spread.Map{Number: 5, Groups: []string{"b"}}).String(); !all["a"].tell(t, owner) || !all["b"].tell(t, owner) {
		t.Errorf("not all masters tell the map: %s", marker(t, all["a"][0]))
	}
}

// S83: a group is made larger by an operator who has looked at it before its names moved.
func TestReal_S83_a_regroup_brings_no_old_map_back(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	five := append(append(realMasters{}, all["a"]...), startMasters(t, 2)...)
	addrs, proxies := five.behindProxies(t)
	looked := proxies[0].HoldNext(faultproxy.Requests, faultproxy.Command("SCAN", ""))
	regrouped := make(chan error, 1)
	go func() {
		_, err := redlock.Regroup(ctx, addrs, inGroup("a")...)
		regrouped <- err
	}()
	comesTo(t, looked, regrouped)
	all.spread(t, "b")
	looked.Release()
	mustSay(t, <-regrouped, nil, "4:b", "call it again")
	regroup(t, addrs, inGroup("a")...)
	if !five.tell(t, "4:b") {
		t.Error("not all masters tell the map")
	}
}

// S83: a client that has been away knows an old map. It reaches only a master that has lost its memory.
func TestReal_S83_who_reaches_only_a_master_that_forgot_brings_no_old_map_back(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	g, proxies := all.proxied(t)
	movesTo(t, g, "orders", "a")
	for _, p := range append(proxies["a"], proxies["b"]...) {
		p.Refuse()
		p.Reset()
	}
	all.spread(t, "b")
	do(t, all["a"][0], "FLUSHALL")
	proxies["a"][0].Heal()
	eventually(t, "it is marked", func() bool { return marker(t, all["a"][0]) != "" })
	time.Sleep(2 * second) // of looks
	if told := marker(t, all["a"][0]); strings.Contains(told, "@") {
		t.Errorf("the master tells %q", told)
	}
	if _, err := g.Clients()["a"].Mutex("orders").TryLock(ctx); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("TryLock: %v", err)
	}
}

// L90: an operator is told which master hangs, before anything has changed or while names move.
func TestReal_L90_a_move_fails_at_a_master_that_hangs(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	slow := all["b"][1]
	slow.Stop()
	mustSay(t, all.trySpread("b"), nil, slow.Addr(), "no answer in time")
	if told := marker(t, all["a"][0]); strings.Contains(told, ">") {
		t.Errorf("the names move: %q", told)
	}
	slow.Continue()

	moving := make(chan error, 1)
	go func() { moving <- all.trySpread("b") }()
	eventually(t, "names move", func() bool { return all["b"].tell(t, "3:a>b") })
	slow.Stop()
	mustSay(t, <-moving, nil, slow.Addr(), "no answer in time", "call it again with the same groups")
	slow.Continue()
	all.spread(t, "b")
}

// Each call ends in one event, however often its name moves, and the event is about the whole call. Who
// leaves a group waits there no more, also by the observer of that group alone.
func TestReal_groups_tell_an_observer_of_each_call_once(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	var mu sync.Mutex
	told := map[string][]string{}
	var took time.Duration
	var clients []*redlock.Client
	for _, group := range []string{"a", "b"} {
		observe := redlock.WithObserver(func(e redlock.Event) {
			mu.Lock()
			defer mu.Unlock()
			switch e.Kind {
			case redlock.LockWaiting, redlock.LockMoved:
				told[group] = append(told[group], string(e.Kind))
			case redlock.LockFailed:
				told["try"] = append(told["try"], fmt.Sprint(errors.Is(e.Err, redlock.ErrMoved), " ", e.Waited))
			case redlock.LockAcquired:
				told[group] = append(told[group], fmt.Sprint(e.Kind, " ", e.Waited))
				took = e.Elapsed
			}
		})
		clients = append(clients, dial(t, redistest.URLs(all[group]), append(inGroup(group), observe)...))
	}
	g, err := redlock.NewGroups(clients...)
	noError(t, err)
	movesTo(t, g, "orders", "a")
	lock(t, all.client(t).Mutex("orders"))
	got := make(chan *redlock.Lease, 1)
	go func() { got <- leased(t)(g.Mutex("orders").Lock(ctx)) }()
	eventually(t, "it is queued", func() bool { return all["a"].queued(t, "orders") })
	all["b"].doAll(t, "SET", "orders", "another's", "PX", 60000) // so that it waits there, too
	moved, began := make(chan error, 1), time.Now()
	go func() { moved <- all.trySpread("b") }()
	eventually(t, "the name moves", func() bool { _, err := g.Group("orders"); return err != nil })

	_, err = g.Mutex("orders").TryLock(ctx)

	mustBe(t, err, redlock.ErrMoved)
	noError(t, <-moved)
	waited := time.Since(began)
	eventually(t, "it is queued again", func() bool { return all["b"].queued(t, "orders") })
	all["b"].doAll(t, "DEL", "orders")
	arrival(t, "the lease", got)
	mu.Lock()
	defer mu.Unlock()
	want := map[string][]string{"a": {"waiting", "moved"}, "try": {"true false"}, "b": {"waiting", "acquired true"}}
	if !reflect.DeepEqual(told, want) || took < waited {
		t.Errorf("the observers were told %q, the last after %v, want %q, after %v at least", told, took, want, waited)
	}
}

// After Close a name that moved says so no more: a loop around TryLock ends.
func TestReal_groups_that_are_closed_say_so_of_a_name_that_moves(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a")
	g := all.client(t) // there is no map: every name moves
	_, err := g.Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrMoved)
	noError(t, g.Close())
	_, err = g.Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrClosed)
}

// L91: a zone is lost, which has one master of each group. What is held in the last group is free as soon
// as what is held in the first.
func TestReal_L91_groups_close_side_by_side(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	all := startGroups(t, names...)
	all.spread(t, names...)
	g, other := all.client(t), all.client(t)
	for _, group := range names {
		movesTo(t, g, named(t, g, group), group)
		lock(t, g.Mutex(named(t, g, group), redlock.TTL(second)))
	}
	name := named(t, g, "d")
	for _, group := range names {
		all[group][0].Stop()
	}
	began := time.Now()
	closed := make(chan error, 1)
	go func() { closed <- g.Close() }()

	unlocks(t, lock(t, other.Mutex(name)))

	mustBe(t, <-closed, redlock.ErrUndelivered)
	if took := time.Since(began); took > 9*second {
		t.Errorf("Close of four groups took %v: one takes three seconds", took)
	}
	for _, group := range names {
		all[group][0].Continue()
	}
}

// A process rests while its names move, and their old group ends. Whatever it makes or calls then finds them, on
// the second try at the latest.
func TestReal_L89_a_process_that_rested_finds_a_name_whose_group_is_gone(t *testing.T) {
	t.Parallel()
	for what, use := range map[string]func(g *redlock.Groups) error{
		"TryLock": func(g *redlock.Groups) error {
			lease, err := g.Mutex("boss").TryLock(ctx)
			if err == nil {
				err = lease.Unlock(ctx)
			}
			return err
		},
		"Arrive":    func(g *redlock.Groups) error { return g.Latch("boss", 2).Arrive(ctx, "x") },
		"Inspect":   func(g *redlock.Groups) error { _, err := g.Inspect(ctx, "boss"); return err },
		"Available": func(g *redlock.Groups) error { _, err := g.Semaphore("boss", 2).Available(ctx); return err },
		"Campaign": func(g *redlock.Groups) error {
			lease, err := g.Election("boss").Campaign(ctx, "x")
			if err == nil {
				err = lease.Unlock(ctx)
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := startGroups(t, "a", "b")
			all.spread(t, "a")
			g, _ := all.resting(t, second/10)
			movesTo(t, g, "boss", "a")
			time.Sleep(2 * second) // heartbeats have found it unused
			all.spread(t, "b")
			for _, s := range all["a"] {
				s.Kill()
			}

			err := use(g)
			if err != nil {
				err = use(g)
			}

			noError(t, err)
		})
	}
}

// resting returns Groups through proxies, of clients that rest when they have not been used for so long.
func (g realGroups) resting(t testing.TB, after time.Duration) (*redlock.Groups, map[string][]*faultproxy.Proxy) {
	t.Helper()
	proxies := map[string][]*faultproxy.Proxy{}
	var clients []*redlock.Client
	rest := seam.Option(seam.Seams{Rest: after}).(redlock.Option)
	for name, ms := range g {
		var addrs []string
		addrs, proxies[name] = ms.behindProxies(t)
		clients = append(clients, dial(t, addrs, append(inGroup(name), redlock.WithNodeTimeout(second/2), rest)...))
	}
	groups, err := redlock.NewGroups(clients...)
	noError(t, err)
	return groups, proxies
}

// L89, for those who wait without a lock.
func TestReal_L89_waiting_in_a_group_that_is_out_of_reach_ends_though_the_others_rest(t *testing.T) {
	t.Parallel()
	for what, waits := range waitsForBoss {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := startGroups(t, "a", "b")
			all.spread(t, "a")
			g, proxies := all.resting(t, second/10)
			movesTo(t, g, "boss", "a")
			_, err := all.client(t).Election("boss").Campaign(ctx, "x")
			noError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- withPatience(func(ctx context.Context) error { return waits(ctx, g) }) }()
			time.Sleep(2 * second) // the client of b is unused
			for _, p := range proxies["a"] {
				p.Refuse()
				p.Reset()
			}
			time.Sleep(second)
			all.spread(t, "b")

			mustBe(t, arrival(t, "the end", ended), redlock.ErrMoved)
		})
	}
}

// S83: another operator has ended the same move while this one waited.
func TestReal_S83_a_move_that_another_operator_has_ended_is_done(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	clk := clock.NewMock()
	done := make(chan error, 1)
	go func() {
		_, err := redlock.Spread(ctx, all.addrs(), []string{"b"}, redlock.WithTTL(second), redlock.WithClock(clk))
		done <- err
	}()
	eventually(t, "names move", func() bool { return all["a"].tell(t, "3:a>b") && all["b"].tell(t, "3:a>b") })
	all.spread(t, "b")
	if !all["a"].tell(t, "4:b") {
		t.Fatal("they have not moved")
	}
	eventually(t, "the first operator is done", func() bool {
		clk.Add(second)
		return len(done) > 0
	})
	noError(t, <-done)
}
