package redlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file stages on real servers why simpler rules would be wrong, and that ours
// are not.

// S29: every master counts its permits, and a majority of grants is taken for one.
// Three clients, two permits, three masters: 1 asks A and B, 2 asks A and C, 3 asks
// B and C. Each master gives two permits away, and three clients hold one.
func TestReal_S29_counting_permits_per_master_lets_one_too_many_in(t *testing.T) {
	masters := startMasters(t, 3)
	pairs := [][]int{{0, 1}, {0, 2}, {1, 2}}
	holders := 0
	for _, pair := range pairs {
		granted := 0
		for _, i := range pair {
			if do(t, masters[i], "INCR", "naive") != int64(3) { // of two
				granted++
			}
		}
		if granted >= 2 {
			holders++
		}
	}
	if holders != 3 {
		t.Fatalf("%d holders: the counterexample shows nothing", holders)
	}

	addrs, proxies := masters.behindProxies(t)
	admitted := 0
	for i, pair := range pairs {
		c := dial(t, addrs, redlock.WithNodeTimeout(second/2))
		eventually(t, "it is connected", func() bool { return connected(c) == len(masters) })
		out := proxies[3-pair[0]-pair[1]]
		out.Hang()
		_, err := c.Semaphore("sem", 2).TryAcquire(ctx, 1)
		out.Heal()
		if err == nil {
			admitted++
		}
		t.Logf("client %d: %v", i+1, err)
	}
	if admitted > 2 {
		t.Errorf("%d hold one of two permits", admitted)
	}
}

// connected returns how many masters a client is connected to.
func connected(c *redlock.Client) (n int) {
	for _, s := range c.Nodes() {
		if s.State == node.StateConnected {
			n++
		}
	}
	return n
}

// S30: the token is the maximum of what INCR says at a majority. A counts 1 already.
// 1 increments A and B: 2 and 1, token 2. 2 increments B and C: 2 and 1, token 2.
func TestReal_S30_the_maximum_of_counters_gives_a_token_twice(t *testing.T) {
	masters := startMasters(t, 3)
	do(t, masters[0], "INCR", "naive")
	incr := func(nodes ...int) (highest int64) {
		for _, i := range nodes {
			highest = max(highest, do(t, masters[i], "INCR", "naive").(int64))
		}
		return highest
	}
	if first, next := incr(0, 1), incr(1, 2); first != next {
		t.Fatalf("tokens %d and %d: the counterexample shows nothing", first, next)
	}
	masters.doAll(t, "DEL", "naive")

	// The same with ours: A counts more than any clock, and is heard by the first only.
	do(t, masters[0], "SET", "redlock:token:fenced", int64(1)<<52)
	m := masters.client(t).Mutex("fenced", redlock.Fenced())
	masters[2].Stop()
	first := lock(t, m)
	masters[2].Continue()
	unlocks(t, first)
	masters.mustKeepNothing(t)
	masters[0].Stop()
	defer masters[0].Continue()
	next := lock(t, masters.client(t).Mutex("fenced", redlock.Fenced()))
	if next.Token() <= first.Token() {
		t.Errorf("token %d after %d", next.Token(), first.Token())
	}
	unlocks(t, next)
}

// A latch that counts down counts an arrival twice whose answer was lost and that
// was reported again: it opens early.
func TestReal_latch_that_counts_down_opens_early(t *testing.T) {
	masters := startMasters(t, 3)
	masters.doAll(t, "SET", "naive", 2)
	for range 2 { // the same arrival
		masters.doAll(t, "DECR", "naive")
	}
	if masters.values(t, "naive")[0] != "0" {
		t.Fatal("it did not open: the counterexample shows nothing")
	}

	l := masters.client(t).Latch("jobs", 2)
	for range 2 {
		if err := l.Arrive(ctx, "one"); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := l.Count(ctx); n != 1 || err != nil {
		t.Errorf("%d have arrived, %v; want one", n, err)
	}
}

// Waiters that queue in the order in which each master hears of them have another
// first one at each, and nobody is first at a majority. With tickets that are the
// same at all masters, all are served.
func TestReal_order_of_arrival_at_each_master_has_no_first(t *testing.T) {
	masters := startMasters(t, 3)
	for i, s := range masters {
		for _, waiter := range [][]string{{"1", "2", "3"}, {"2", "3", "1"}, {"3", "1", "2"}}[i] {
			do(t, s, "RPUSH", "naive", waiter)
		}
	}
	first := map[string]int{}
	for _, s := range masters {
		first[string(do(t, s, "LINDEX", "naive", 0).([]byte))]++
	}
	for waiter, n := range first {
		if n >= 2 {
			t.Fatalf("%s is first at %d masters: the counterexample shows nothing", waiter, n)
		}
	}
	masters.doAll(t, "DEL", "naive")

	held := lock(t, masters.client(t).Mutex("fair", redlock.Fair()))
	waiters := make([]func() *redlock.Lease, 3)
	for i := range waiters {
		waiters[i] = lockLater(t, masters.client(t).Mutex("fair", redlock.Fair()))
	}
	unlocks(t, held)
	done := make(chan bool)
	for _, later := range waiters {
		go func() {
			unlocks(t, later())
			done <- true
		}()
	}
	for range waiters {
		arrival(t, "a lock", done)
	}
	masters.mustKeepNothing(t)
}

// A writer's renewal finds C without its key, and the repair is on its way when a
// reader takes C. SET NX would put the writer back beside it.
func TestReal_S36_a_writer_is_not_repaired_over_a_reader(t *testing.T) {
	masters := startMasters(t, 1)
	c := masters[0]
	repair := wire.ReadWriteOf("", "rw").RepairWriter("a/writer/1:0", time.Minute)
	do(t, c, "ZADD", "redlock:readers:rw", time.Now().Add(time.Minute).UnixMilli(), "a/reader/1")

	if got := runAt(t, c, repair); got != nil {
		t.Errorf("the repair says %v", got)
	}

	if got := masters.values(t, "rw")[0]; got != "" {
		t.Errorf("C has the writer %q beside its reader", got)
	}
	do(t, c, "DEL", "redlock:readers:rw")
	if got := runAt(t, c, repair); got != "OK" {
		t.Errorf("the repair says %v where nobody is", got)
	}
}

// C belongs to somebody else, and its counter is low. Were it raised to the token of
// A and B, C would vouch for a token that it never gave.
func TestReal_S37_a_token_is_not_raised_where_the_lock_was_not_granted(t *testing.T) {
	masters := startMasters(t, 3)
	do(t, masters[0], "SET", "redlock:token:fenced", time.Now().Add(time.Hour).UnixMicro())
	do(t, masters[2], "SET", "fenced", "somebody/else/1:0")
	do(t, masters[2], "SET", "redlock:token:fenced", 7)

	lease, err := masters.client(t).Mutex("fenced", redlock.Fenced(), redlock.NoRenew()).TryLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mustSettle(t, masters[2])

	counts := masters.values(t, "redlock:token:fenced")
	if want := strconv.FormatUint(lease.Token(), 10); counts[0] != want || counts[1] != want {
		t.Errorf("A and B count %v, want the token %s", counts[:2], want)
	}
	if counts[2] != "7" {
		t.Errorf("C counts %s, and granted nothing", counts[2])
	}
	q := wire.QueueOf("", "fenced")
	if got := runAt(t, masters[2], wire.FencedRaise("fenced", q, lease.Value(), lease.Token())); got != int64(-1) {
		t.Errorf("asked all the same, it says %v", got)
	}
	if got := masters.values(t, "redlock:token:fenced")[2]; got != "7" {
		t.Errorf("asked all the same, C counts %s", got)
	}
	unlocks(t, lease)
}

// There is always a reader, and the next one comes before the last one goes, unless
// a writer waits.
func TestReal_L14_a_writer_gets_its_turn_in_a_stream_of_readers(t *testing.T) {
	m := startMasters(t, 3).client(t).RWMutex("rw")
	reader, err := m.RLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		w, err := m.Lock(limited)
		if err == nil {
			err = w.Unlock(ctx)
		}
		written <- err
	}()

	for ended := false; !ended; {
		next := make(chan *redlock.Lease, 1)
		go func() {
			r, err := m.RLock(ctx)
			if err != nil {
				t.Error(err)
			}
			next <- r
		}()
		var following *redlock.Lease
		select {
		case following = <-next:
		case <-time.After(second / 10): // the writer is before it
		}
		unlocks(t, reader)
		if following == nil {
			following = <-next
		}
		reader = following
		select {
		case err := <-written:
			ended = true
			if err != nil {
				t.Errorf("the writer: %v", err)
			}
		default:
		}
	}
	unlocks(t, reader)
}
