package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
)

// realGroups are groups of three masters, by name. All of them are new.
type realGroups map[string]realMasters

// inGroup is how a client of a group is made.
func inGroup(name string) []redlock.Option {
	return []redlock.Option{redlock.WithGroup(name), redlock.WithSpread(), redlock.WithTTL(second), redlock.WithRestartGuard(second)}
}

func startGroups(t testing.TB, names ...string) realGroups {
	t.Helper()
	all := realGroups{}
	for _, name := range names {
		all[name] = startMasters(t, 3)
		declareNew(t, redistest.URLs(all[name]), inGroup(name)...)
	}
	return all
}

// addrs are the addresses of the masters of each group.
func (g realGroups) addrs() map[string][]string {
	addrs := map[string][]string{}
	for name, ms := range g {
		addrs[name] = redistest.URLs(ms)
	}
	return addrs
}

// trySpread has the names in the groups called over from now on.
func (g realGroups) trySpread(over ...string) error {
	_, err := redlock.Spread(ctx, g.addrs(), over, redlock.WithTTL(second))
	return err
}

func (g realGroups) spread(t testing.TB, over ...string) {
	t.Helper()
	noError(t, g.trySpread(over...))
}

// client returns a process that uses all groups.
func (g realGroups) client(t testing.TB) *redlock.Groups {
	t.Helper()
	return groupsAt(t, g.addrs())
}

func groupsAt(t testing.TB, addrs map[string][]string) *redlock.Groups {
	t.Helper()
	var clients []*redlock.Client
	for _, name := range slices.Sorted(maps.Keys(addrs)) {
		clients = append(clients, dial(t, addrs[name], inGroup(name)...))
	}
	all, err := redlock.NewGroups(clients...)
	noError(t, err)
	return all
}

// proxied returns a process that uses all groups through proxies.
func (g realGroups) proxied(t testing.TB) (*redlock.Groups, map[string][]*faultproxy.Proxy) {
	t.Helper()
	addrs, proxies := map[string][]string{}, map[string][]*faultproxy.Proxy{}
	for name, ms := range g {
		addrs[name], proxies[name] = ms.behindProxies(t)
	}
	return groupsAt(t, addrs), proxies
}

// named returns a name for a group, by the newest map that a process knows.
func named(t testing.TB, g *redlock.Groups, group string) string {
	t.Helper()
	for i := range 1000 {
		name := fmt.Sprint("orders-", i)
		if of, _ := g.Group(name); of == group {
			return name
		}
	}
	t.Fatalf("no name is in group %s", group)
	return ""
}

// movesTo waits until a process knows that a name is in a group.
func movesTo(t testing.TB, g *redlock.Groups, name, group string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is in group %s", name, group), func() bool {
		of, err := g.Group(name)
		return err == nil && of == group
	})
}

// S83: processes fight for names while groups come and go. Some of them learn late that a map has
// changed, and masters lose their memory.
func TestReal_S83_no_name_has_two_holders_while_groups_come_and_go(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	all.spread(t, "a", "b")
	type holder struct {
		mu    sync.Mutex
		lease *redlock.Lease
		token uint64
	}
	names := make([]holder, 12)
	var taken, moved atomic.Int64
	stopped, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for p := range 4 {
		g, proxies := all.proxied(t)
		if p == 0 { // hears late, and of some masters only
			proxies["a"][0].Delay(faultproxy.Replies, 30*time.Millisecond)
			proxies["b"][1].Refuse()
			proxies["c"][2].Refuse()
		}
		for i := range 3 {
			running.Go(func() {
				for n := p + i; stopped.Err() == nil; n++ {
					h, opts := &names[n%len(names)], []redlock.MutexOption{redlock.Fenced()}
					left := n%5 == 0 // to its TTL
					if left {
						opts = append(opts, redlock.NoRenew())
					}
					limited, cancel := context.WithTimeout(stopped, 300*time.Millisecond)
					lease, err := g.Mutex(fmt.Sprint("orders-", n%len(names)), opts...).Lock(limited)
					cancel()
					if err != nil {
						if errors.Is(err, redlock.ErrMoved) {
							moved.Add(1)
						}
						continue
					}
					h.mu.Lock()
					other := h.lease
					if other != nil && other.Valid() && lease.Valid() {
						t.Errorf("two holders: %v and %v", other, lease)
					}
					if lease.Token() <= h.token {
						t.Errorf("token %d after %d", lease.Token(), h.token)
					}
					h.lease, h.token = lease, lease.Token()
					h.mu.Unlock()
					taken.Add(1)
					switch {
					case left:
						continue
					case n%7 == 0: // is renewed, if it may be
						time.Sleep(second + second/2)
					default:
						time.Sleep(5 * time.Millisecond)
					}
					lease.Unlock(ctx)
				}
			})
		}
	}
	for i, over := range [][]string{{"a", "b", "c"}, {"b", "c"}, {"a"}, {"a", "b", "c"}} {
		before := taken.Load()
		all.spread(t, over...)
		do(t, all["b"][i%3], "FLUSHALL")
		eventually(t, "the names are served", func() bool { return taken.Load() > before+100 })
	}
	stop()
	running.Wait()
	t.Logf("%d leases, %d calls met a name that moved", taken.Load(), moved.Load())
}

// S83: a holder keeps its lease for no longer than its TTL when its name moves, also if it is cut off
// from all but one master that has told the new map.
func TestReal_S83_a_lease_ends_before_its_name_has_moved(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	old, proxies := all.proxied(t)
	holder, err := old.Mutex("orders").Lock(ctx)
	noError(t, err)
	proxies["a"][2].Refuse()
	proxies["a"][2].Reset()
	waits := make(chan error, 1)
	go func() { // in the queue of the old group
		lease, err := old.Mutex("orders").Lock(ctx)
		if err == nil && holder.Valid() {
			err = errors.New("two holders")
		}
		if err == nil {
			err = lease.Unlock(ctx)
		}
		waits <- err
	}()
	noError(t, err)
	began := time.Now()

	all.spread(t, "b")

	if holder.Valid() {
		t.Error("the lease is valid by a map that does not count any more")
	}
	if took := time.Since(began); took < second {
		t.Errorf("the name has moved within %v", took)
	}
	other := all.client(t)
	movesTo(t, other, "orders", "b")
	lease, err := other.Mutex("orders").Lock(ctx)
	noError(t, err)
	noError(t, lease.Unlock(ctx))
	noError(t, <-waits)
}

// Names that stay are not disturbed.
func TestReal_groups_that_come_and_go_disturb_no_name_that_stays(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	all.spread(t, "a", "b", "c")
	g := all.client(t)
	leases := map[string]*redlock.Lease{}
	for i := range 30 {
		name := fmt.Sprint("orders-", i)
		lease, err := g.Mutex(name).Lock(ctx)
		noError(t, err)
		leases[name] = lease
	}
	was := map[string]string{}
	for name := range leases {
		was[name] = groupOf(t, g, name)
	}

	all.spread(t, "a", "b")

	movesTo(t, g, named(t, g, "a"), "a")
	eventually(t, "the map is known", func() bool { return g.Healthy() == nil && moves(g, leases) == 0 })
	stay := 0
	for name, lease := range leases {
		if was[name] == "c" {
			mustBe(t, context.Cause(lease.Context()), redlock.ErrExpired)
			continue
		}
		stay++
		if is := groupOf(t, g, name); is != was[name] || !lease.Valid() {
			t.Errorf("%s: in group %s, was in %s: %v", name, is, was[name], lease.Err())
		}
		noError(t, lease.Unlock(ctx))
	}
	if stay == 0 || stay == len(leases) {
		t.Errorf("%d of %d stay", stay, len(leases))
	}
}

// moves is how many of the names are in no group.
func moves(g *redlock.Groups, names map[string]*redlock.Lease) (n int) {
	for name := range names {
		if _, err := g.Group(name); err != nil {
			n++
		}
	}
	return n
}

func groupOf(t testing.TB, g *redlock.Groups, name string) string {
	t.Helper()
	of, err := g.Group(name)
	noError(t, err)
	return of
}

// S51: what outlives locks moves with its name.
func TestReal_S51_what_outlives_locks_moves_to_the_new_group(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	before := all.client(t)
	ahead := time.Now().Add(time.Hour).UnixMicro() // by the clock of a client
	all["a"][:2].doAll(t, "SET", "redlock:token:orders", ahead, "PX", 600_000)
	noError(t, before.Latch("done", 3).Arrive(ctx, "one"))
	noError(t, before.Latch("done", 3).Generation("2").Arrive(ctx, "two"))
	noError(t, before.Semaphore("jobs", 3).Resize(ctx, 2))

	all.spread(t, "b")

	after := all.client(t)
	movesTo(t, after, "orders", "b")
	lease, err := after.Mutex("orders", redlock.Fenced()).Lock(ctx)
	noError(t, err)
	if lease.Token() <= uint64(ahead) {
		t.Errorf("the token is %d, and was %d before", lease.Token(), ahead)
	}
	for latch, want := range map[*redlock.Latch]int{after.Latch("done", 3): 1, after.Latch("done", 3).Generation("2"): 1} {
		if n, err := latch.Count(ctx); n != want || err != nil {
			t.Errorf("%d have arrived, %v; want %d", n, err, want)
		}
	}
	_, err = after.Semaphore("jobs", 3).TryAcquire(ctx, 1)
	mustBe(t, err, redlock.ErrPermits)
	movesTo(t, before, "done", "b")
	mustBe(t, before.Clients()["a"].Latch("done", 3).Arrive(ctx, "three"), redlock.ErrMoved)
}

// Handles find a name that has moved since they were made.
func TestReal_groups_are_followed_by_the_handles_of_every_kind(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	g := all.client(t)
	rw, jobs := g.RWMutex("config"), g.Semaphore("jobs", 2)
	kinds := map[string]func(context.Context) (*redlock.Lease, error){
		"mutex": g.Mutex("orders").Lock, "cached": g.Mutex("cached", redlock.Cached()).Lock, "fair": g.Mutex("fair", redlock.Fair()).Lock,
		"multi": g.Multi([]string{"x", "y"}).Lock, "read": rw.RLock, "write": rw.Lock,
		"semaphore": func(ctx context.Context) (*redlock.Lease, error) { return jobs.Acquire(ctx, 2) },
	}
	for _, over := range []string{"a", "b", "a"} {
		all.spread(t, over)
		for kind, lock := range kinds {
			limited, cancel := context.WithTimeout(ctx, patience)
			lease, err := lock(limited)
			cancel()
			if err != nil {
				t.Fatalf("%s in %s: %v", kind, over, err)
			}
			if err := lease.Unlock(ctx); err != nil {
				t.Errorf("%s in %s: %v", kind, over, err)
			}
		}
	}
	noError(t, g.Healthy())
	noError(t, g.Close())
}

// A client that does not go by the map would lock names that are in other groups.
func TestReal_groups_are_no_masters_for_a_client_that_knows_of_no_map(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	plain := []redlock.Option{redlock.WithTTL(second), redlock.WithRestartGuard(second)}
	before := dial(t, redistest.URLs(all["a"]), plain...)
	lease := lock(t, before.Mutex("orders"))

	all.spread(t, "a", "b")

	if lease.Valid() {
		t.Error("a lease from before there was a map is still valid")
	}
	_, err := before.Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrNoQuorum)
	_, err = tryDial(redistest.URLs(all["a"]), plain...)
	mustBe(t, err, guard.ErrOtherGroup)
}

// S83: a master that has lost its memory gets the map back from clients that know it, before it votes.
func TestReal_S83_a_master_that_lost_its_memory_gets_the_map_back(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a", "b")
	g := all.client(t)
	name := named(t, g, "a")
	do(t, all["a"][0], "FLUSHALL")
	do(t, all["a"][0], "SET", "redlock:marker", "") // nor does it get another one meanwhile
	do(t, all["a"][0], "DEL", "redlock:marker")
	eventually(t, "it has the map", func() bool {
		m, err := guard.ParseMarker(marker(t, all["a"][0]))
		return err == nil && m.Group.Map == "2:a,b"
	})
	// It votes again: without another master nobody gets a quorum.
	all["a"][1].Kill()
	eventually(t, "the lock is served", func() bool {
		lease, err := g.Mutex(name).TryLock(ctx)
		return err == nil && lease.Unlock(ctx) == nil
	})
}

func TestReal_groups_say_what_is_wrong(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	g := all.client(t)
	_, err := g.Mutex("orders").TryLock(ctx) // no map
	mustBe(t, err, redlock.ErrMoved)
	all.spread(t, "a", "b")
	eventually(t, "the map is known", func() bool { _, err := g.Group("orders"); return err == nil })

	inA, inB := named(t, g, "a"), named(t, g, "b")
	for _, lock := range []func(context.Context) (*redlock.Lease, error){g.Multi([]string{inA, inB}).TryLock, g.Multi([]string{inA, inB}).Lock} {
		_, err = lock(ctx)
		mustSay(t, err, redlock.ErrMoved, fmt.Sprintf("%q is in a", inA), fmt.Sprintf("%q is in b", inB))
	}
	_, err = g.Clients()["a"].Mutex(inB).TryLock(ctx)
	mustSay(t, err, redlock.ErrMoved, fmt.Sprintf("%q is in b", inB))
	_, err = g.Clients()["c"].Mutex(inB).TryLock(ctx)
	mustBe(t, err, redlock.ErrMoved)

	only, err := redlock.NewGroups(dial(t, redistest.URLs(all["a"]), inGroup("a")...))
	noError(t, err)
	_, err = only.Mutex(inB).Lock(ctx)
	mustSay(t, err, redlock.ErrMoved, "no client")

	mustSay(t, realGroups{"a": all["a"], "c": all["c"]}.trySpread("a", "c"), nil, `group "b": its masters must be given`)
	mustSay(t, all.trySpread("a", "d"), nil, `group "d": its masters must be given`)
	mustSay(t, realGroups{"a": all["a"], "b": all["c"]}.trySpread("a", "b"), guard.ErrOtherGroup)
	mustSay(t, realGroups{"a": all["a"], "b": all["b"][:2]}.trySpread("a", "b"), nil, "2 masters: at least 3")
	mustSay(t, realGroups{"a": all["a"], "b": all["b"], "c": all["a"]}.trySpread("a", "b"), guard.ErrSameNode)
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		addrs := map[string][]string{"a": redistest.URLs(all["a"]), "b": redistest.URLs(all["b"])}
		_, err := redlock.Spread(limited, addrs, []string{"a"}, redlock.WithTTL(second), redlock.WithRestartGuard(20*second))
		ended <- err
	}()
	eventually(t, "names move", func() bool { return all["a"].tell(t, "3:a,b>a") && all["b"].tell(t, "3:a,b>a") })
	cancel()
	mustSay(t, arrival(t, "the operator gives up", ended), context.Canceled, "call it again")
	mustSay(t, all.trySpread("a", "b", "c"), nil, "names are moving to the groups a")
	all.spread(t, "a")
	movesTo(t, g, inB, "a")
}

func mustSay(t testing.TB, err, is error, words ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Errorf("error %v, want %v", err, is)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// S83: the masters are looked at, then an operation begins, and before both reach the masters the name
// begins to move. The votes come with the new map, which is known by then.
func TestReal_S83_what_was_asked_before_the_map_was_known_is_refused_after_it(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(g *redlock.Groups) error{
		"lock": func(g *redlock.Groups) error {
			lease, err := g.Mutex("orders").TryLock(ctx)
			if err == nil {
				err = lease.Unlock(ctx)
			}
			return err
		},
		"arrive": func(g *redlock.Groups) error { return g.Latch("orders", 2).Arrive(ctx, "one") },
		"count": func(g *redlock.Groups) error {
			_, err := g.Latch("orders", 2).Count(ctx)
			return err
		},
		"resize": func(g *redlock.Groups) error { return g.Semaphore("orders", 2).Resize(ctx, 1) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := startGroups(t, "a", "b")
			all.spread(t, "a")
			g, proxies := all.proxied(t)
			movesTo(t, g, "orders", "a")
			var looks []*faultproxy.Hold
			for _, p := range proxies["a"] {
				looks = append(looks, p.HoldNext(faultproxy.Requests, faultproxy.Command("", "redlock:marker")))
			}
			for _, look := range looks {
				comesTo(t, look, nil)
			}
			done, spread := make(chan error, 1), make(chan error, 1)
			go func() { done <- do(g) }()
			go func() { spread <- all.trySpread("b") }()
			eventually(t, "the name moves", func() bool {
				return all["a"].tell(t, "3:a>b")
			})
			for _, look := range looks {
				look.Release()
			}
			mustBe(t, arrival(t, "the operation ends", done), redlock.ErrMoved)
			noError(t, arrival(t, "the names have moved", spread))
		})
	}
}

// tell reports whether all masters tell that map.
func (ms realMasters) tell(t testing.TB, text string) bool {
	t.Helper()
	return !slices.ContainsFunc(ms, func(s *redistest.Server) bool {
		m, err := guard.ParseMarker(marker(t, s))
		return err != nil || m.Group.Map != text
	})
}

// S83: a waiter in the queue gets no lock that moves, although its master hands it over.
func TestReal_S83_a_release_hands_over_no_name_that_moves(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	g := all.client(t)
	holder := lock(t, g.Mutex("orders"))
	waiter := all.client(t)
	lease := make(chan time.Time, 1)
	go func() {
		l, err := waiter.Mutex("orders").Lock(ctx)
		lease <- time.Now()
		if err == nil {
			err = l.Unlock(ctx)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "it is queued", func() bool { return all["a"].queued(t, "orders") })
	spread := make(chan time.Time, 1)
	go func() {
		if err := all.trySpread("b"); err != nil {
			t.Error(err)
		}
		spread <- time.Now()
	}()
	eventually(t, "the waiter's process knows that the name moves", func() bool { _, err := waiter.Group("orders"); return err != nil })

	noError(t, holder.Unlock(ctx))

	if got, moved := <-lease, <-spread; got.Before(moved) {
		t.Errorf("it has the lock %v before that is in the new group", moved.Sub(got))
	}
}

// A master that forgets the map while names move may vote by an old one: the move is not finished.
func TestReal_S83_names_do_not_move_past_a_master_that_forgets_the_map(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	spread := make(chan error, 1)
	go func() { spread <- all.trySpread("b") }()
	eventually(t, "names move", func() bool { return all["a"].tell(t, "3:a>b") && all["b"].tell(t, "3:a>b") })
	do(t, all["a"][1], "FLUSHALL")
	mustSay(t, <-spread, nil, "lost its map", "call it again")
	all.spread(t, "b")
	if !all["a"].tell(t, "4:b") {
		t.Error("the map is not told everywhere")
	}
}

// Masters that are added to a group, or replaced, learn its map.
func TestReal_S83_a_group_that_is_regrouped_keeps_its_map(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a", "b")
	inB := named(t, all.client(t), "b")
	all["a"] = append(all["a"], startMasters(t, 2)...)
	regroup(t, redistest.URLs(all["a"]), inGroup("a")...)
	if !all["a"].tell(t, "2:a,b") {
		t.Error("some of the five masters do not tell the map")
	}
	g := all.client(t)
	inA := named(t, g, "a")
	for _, name := range []string{inA, inB} {
		noError(t, lock(t, g.Mutex(name)).Unlock(ctx))
	}
	_, err := g.Clients()["a"].Mutex(inB).TryLock(ctx)
	mustBe(t, err, redlock.ErrMoved)
}

// fastClock has timers that fire ten times too early.
type fastClock struct{ clock.Clock }

func (c fastClock) Timer(d time.Duration) *clock.Timer { return c.Clock.Timer(d / 10) }

// S83: the operator's clock runs fast. By the masters' clocks the leases of before have not ended yet.
func TestReal_S83_a_fast_clock_of_the_operator_moves_no_name_too_early(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.spread(t, "a")
	addrs := map[string][]string{"a": redistest.URLs(all["a"]), "b": redistest.URLs(all["b"])}
	began := time.Now()
	_, err := redlock.Spread(ctx, addrs, []string{"b"}, redlock.WithTTL(second), redlock.WithClock(fastClock{clock.New()}))
	noError(t, err)
	if took := time.Since(began); took < second {
		t.Errorf("the names have moved within %v", took)
	}
}
