package guard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
)

const (
	hold      = 30 * time.Second
	tolerance = 500 * time.Millisecond
	day       = 24 * time.Hour
)

// world is one master with any number of guards around it, in virtual time.
type world struct {
	t      *testing.T
	clock  *guardClock // ours
	run    string
	start  time.Time     // of the run, on the master's clock
	offset time.Duration // of the master's clock
	frozen time.Time     // where the master's clock stands still, if it does
	marker Marker
	fixed  bool // the master refuses to write

	replica   bool
	promotion string
	offsets   string // what clients have written of the clock
}

// guardClock is a client's clock whose wall part can be set and whose monotonic
// part can stand still.
type guardClock struct {
	clock.Clock
	wall time.Time
	mono time.Duration
}

func (c *guardClock) Now() time.Time           { return c.wall }
func (c *guardClock) Monotonic() time.Duration { return c.mono }

// newWorld has a master that clients have known since it started.
func newWorld(t *testing.T, uptime time.Duration) *world {
	w := newMaster(t, uptime)
	w.marker = marked("run1", w.start)
	return w
}

// newMaster has one that no client has ever seen.
func newMaster(t *testing.T, uptime time.Duration) *world {
	c := &guardClock{wall: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)}
	return &world{t: t, clock: c, run: "run1", start: c.wall.Add(-uptime)}
}

// marked is a marker with the hold of the clients here.
func marked(run string, since time.Time) Marker { return NewMarker(run, since).with(hold, GroupID{}) }

// said is what the marker says: all but its nonce.
func (w *world) said() Marker {
	m := w.marker
	m.Nonce = ""
	return m
}

func (w *world) time() time.Time {
	if !w.frozen.IsZero() {
		return w.frozen
	}
	return w.clock.Now().Add(w.offset)
}

// pass lets true time pass for everybody.
func (w *world) pass(d time.Duration) {
	w.clock.mono += d
	w.clock.wall = w.clock.wall.Add(d)
}

func (w *world) restart(run string) {
	w.run, w.start, w.marker = run, w.time(), Marker{}
}

// forget has it restart without its data.
func (w *world) forget() {
	w.restart(w.run + "again")
	w.offsets = ""
}

// watched is one client's guard of the world's master.
type watched struct {
	*Guard
	w    *world
	edit func(*Evidence) // what the client cannot see
}

func (w *world) guard(c Config) *watched { return &watched{Guard: New(c, w.clock, nil), w: w} }

func (w *world) client() *watched {
	return w.guard(Config{Hold: hold, ClockTolerance: tolerance})
}

// look is a handshake or heartbeat: evidence in, marker out, and the answer to
// the write is evidence again.
func (g *watched) look() Verdict {
	v := g.Look(g.evidence())
	if v.Writes() {
		g.write(v)
		g.Look(g.evidence())
	}
	return v
}

// beforeVote writes what must be written before a vote.
func (g *watched) beforeVote() {
	if v := g.BeforeVote(); v.Writes() {
		g.write(v)
		g.Look(g.evidence())
	}
}

// write is the marker's script.
func (g *watched) write(v Verdict) {
	if v.Offsets != "" && v.OffsetsOver == g.w.offsets {
		g.w.offsets = v.Offsets
	}
	if v.Write.RunID == "" {
		return
	}
	if v.Over != g.w.marker || g.w.fixed {
		return
	}
	g.w.marker = v.Write
	if v.Write.Since.IsZero() {
		g.w.marker.Since = NewMarker("", g.evidence().Time).Since
	}
}

func (g *watched) evidence() Evidence {
	w := g.w
	e := Evidence{RunID: w.run, Uptime: w.time().Sub(w.start).Truncate(time.Second), Time: w.time(), Marker: w.marker, Replica: w.replica, Promotion: w.promotion, Offsets: w.offsets}
	if g.edit != nil {
		g.edit(&e)
	}
	e.Sent = g.Now().Earlier(e.Took)
	return e
}

// watch is a heartbeat a second.
func (g *watched) watch(d time.Duration) {
	for ; d > 0; d -= time.Second {
		g.w.pass(time.Second)
		g.look()
	}
}

func (g *watched) wantRest(want time.Duration, reason string) {
	g.w.t.Helper()
	v := g.look()
	if v.Rest != want || !strings.Contains(v.Reason, reason) {
		g.w.t.Fatalf("rest %v (%s), want %v (%s)", v.Rest, v.Reason, want, reason)
	}
	err := g.Admit(wire.OpAcquire)
	if (want > 0) != errors.Is(err, ErrQuarantined) {
		g.w.t.Fatalf("rest %v, but Admit says %v", want, err)
	}
}

// blindToRun is a client whose master tells neither run_id nor uptime.
func blindToRun(e *Evidence) { e.RunID, e.Uptime = "", -1 }

// refused is a look that a master does not answer.
func refused(e *Evidence) {
	e.Time, e.Marker, e.Offsets, e.Blind, e.Secret = time.Time{}, Marker{}, "", true, true
}

func TestGuard_admits_a_master_that_is_older_than_the_hold(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.wantRest(0, "")
	if want := marked("run1", w.start); w.said() != want {
		t.Errorf("marker %v, want %v", w.marker, want)
	}
	before := w.marker
	g.watch(3 * hold)
	g.wantRest(0, "")
	if w.marker != before {
		t.Errorf("marker rewritten to %v", w.marker)
	}
}

func TestGuard_refuses_only_acquiring_and_says_for_how_long(t *testing.T) {
	w := newWorld(t, 0)
	g := w.client()
	g.look()
	w.pass(10 * time.Second)
	err := g.Admit(wire.OpAcquire)
	if !errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), "for another 20s: its marker says that it was new, emptied or restarted lately") {
		t.Errorf("acquire: %v", err)
	}
	for _, op := range []wire.Op{wire.OpExtend, wire.OpRepair, wire.OpRelease, wire.OpRead} {
		if err := g.Admit(op); err != nil {
			t.Errorf("%v: %v", op, err)
		}
	}
	w.pass(20 * time.Second)
	if err := g.Admit(wire.OpAcquire); err != nil {
		t.Errorf("after the hold: %v", err)
	}
}

// S3: the master restarts empty while a client that knew it looks on, away
// for a moment or for long.
func TestS3_restart_seen_by_a_client_that_knew_the_master(t *testing.T) {
	for _, away := range []time.Duration{0, time.Second, time.Hour} {
		w := newWorld(t, day)
		g := w.client()
		g.look()
		w.restart("run2")
		w.pass(away)
		g.wantRest(hold, "lost its marker")
		g.watch(hold - time.Second)
		g.wantRest(time.Second, "")
		g.watch(time.Second)
		g.wantRest(0, "")
	}
}

// S33: the uptime of a new run is no proof of its memory, since it may be up to
// a second too long. A client that never saw another run counts from now, and
// those who come later from its marker.
func TestS33_restart_seen_by_a_new_client(t *testing.T) {
	w := newWorld(t, day)
	w.restart("run2")
	w.pass(10*time.Second + 700*time.Millisecond)
	w.client().wantRest(hold, "it started 10s ago and has no marker")
	w.pass(5 * time.Second)
	w.client().wantRest(hold-5*time.Second, "its marker says")
}

// S34: nobody was there when the master was flushed. However long it is up, a
// new client does not let it vote, and does not tell those who come later that
// it may.
func TestS34_flush_seen_by_a_new_client(t *testing.T) {
	w := newWorld(t, day)
	w.pass(time.Second)
	w.marker = Marker{}
	w.pass(1500 * time.Millisecond)
	w.client().wantRest(hold, "has no marker")
	w.pass(time.Second)
	w.client().wantRest(hold-time.Second, "its marker says")
}

// The first lock on new masters takes a restart guard, once, however long they
// are up; an operator who declares them new spares that.
// A client saw that the master had no marker, and writes one when the master has
// been marked by another, and flushed again. Found by the simulator (seed 1347).
func TestS34_marker_that_is_written_after_another_loss(t *testing.T) {
	w := newMaster(t, day)
	late, other := w.client(), w.client()
	toWrite := late.Look(late.evidence())
	other.look()
	w.pass(hold)
	other.wantRest(0, "")
	w.marker = Marker{} // flushed, with what other was granted

	late.write(toWrite)

	late.wantRest(hold, "has no marker")
	w.client().wantRest(hold, "its marker says")
	other.wantRest(hold, "marked anew")
}

func TestS34_first_lock_on_new_masters(t *testing.T) {
	w := newMaster(t, day)
	w.client().wantRest(hold, "redlock init")
	w.pass(hold)
	w.client().wantRest(0, "")

	w = newMaster(t, 3*time.Second)
	w.marker = NewMaster("run1", w.time(), hold, GroupID{})
	w.client().wantRest(0, "")
	w.guard(Config{Hold: 24 * time.Hour}).wantRest(0, "")
}

// Who says that a master is durable says nothing to those who do not, also on
// one that was declared new before it was restarted.
func TestS3_new_master_that_a_durable_client_knows_again(t *testing.T) {
	w := newMaster(t, day)
	w.marker = NewMaster("run1", w.time(), hold, GroupID{})
	c := Config{Hold: hold, Durable: true}
	first, second := w.guard(c), w.guard(c)
	first.wantRest(0, "")
	second.wantRest(0, "")
	kept := w.marker
	w.restart("run2")
	w.marker = kept
	w.pass(time.Second)
	first.wantRest(0, "")
	second.wantRest(0, "")
	w.client().wantRest(hold, "its marker says")
}

// S3, S25: keys and marker come back from a file, but not the newest ones.
func TestS25_restart_with_an_old_marker(t *testing.T) {
	for _, known := range []string{"known", "new"} {
		w := newWorld(t, day)
		g := w.client()
		g.look()
		kept := w.marker
		w.restart("run2")
		w.marker = kept
		if known == "new" {
			g = w.client()
		}
		w.pass(time.Hour)
		g.wantRest(hold, "restarted, or was replaced")
		if want := marked("run2", w.time()); w.said() != want {
			t.Errorf("marker %v, want %v", w.marker, want)
		}
	}
}

// S3, S25: the snapshot holds the very marker that we asked for last.
func TestS25_restart_with_the_marker_that_we_wrote_last(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	kept := w.marker // no heartbeat has read it back yet
	w.restart("run2")
	w.marker = kept
	g.wantRest(hold, "restarted, or was replaced")
}

func TestS3_durable_master_restarts_without_quarantine_while_its_marker_survives(t *testing.T) {
	w := newWorld(t, day)
	w.client().look()
	g := w.guard(Config{Hold: hold, ClockTolerance: tolerance, Durable: true})
	other := w.guard(Config{Hold: hold, ClockTolerance: tolerance, Durable: true})
	g.look()
	other.look()
	since := w.marker.Since
	kept := w.marker
	w.restart("run2")
	w.marker = kept
	g.wantRest(0, "")
	if w.said() != marked("run2", since) {
		t.Errorf("marker %v, want run2 since %v", w.marker, since)
	}
	g.wantRest(0, "")
	other.wantRest(0, "") // who finds the marker rewritten
	w.guard(Config{Hold: hold, Durable: true}).wantRest(0, "")
	w.client().wantRest(hold, "its marker says") // to whom a restart counts
	w.restart("run3")                            // and now without
	g.wantRest(hold, "lost its marker")
}

func TestS3_durable_master_is_known_to_a_new_client_by_a_marker_of_another_run(t *testing.T) {
	w := newWorld(t, day)
	w.client().look()
	kept := w.marker
	w.restart("run2")
	w.marker = kept
	w.guard(Config{Hold: hold, Durable: true}).wantRest(0, "")
	if w.said() != marked("run2", kept.Since) {
		t.Errorf("marker %v", w.marker)
	}
}

func TestS3_durable_master_whose_marker_cannot_be_read(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(Config{Hold: hold, Durable: true})
	g.edit = func(e *Evidence) { e.Blind, e.Marker = true, Marker{} }
	g.wantRest(hold, "cannot be read")
	g.watch(hold)
	w.restart("run2")
	g.wantRest(0, "")
}

// The marker that a durable master kept over its restart is lost later, and
// put back by another client.
func TestS24_durable_master_that_lost_its_marker(t *testing.T) {
	w := newWorld(t, day)
	c := Config{Hold: hold, ClockTolerance: tolerance, Durable: true}
	g, other := w.guard(c), w.guard(c)
	g.look()
	other.look()
	w.pass(10 * time.Second)
	w.marker = Marker{}
	other.look()
	w.pass(time.Second)
	g.wantRest(hold-time.Second, "marked anew")
	w.guard(c).wantRest(hold-time.Second, "its marker says")
}

// S34: a durable master can be flushed as well as any.
func TestS34_durable_master_without_a_marker(t *testing.T) {
	w := newMaster(t, day)
	w.guard(Config{Hold: hold, Durable: true}).wantRest(hold, "has no marker")
}

// S1: a promoted replica has the old master's marker, or none.
func TestS1_promoted_replica(t *testing.T) {
	w := newWorld(t, day)
	w.client().look()
	w.run = "replica" // as old as the master was
	w.client().wantRest(hold, "replaced by another server")
}

func TestS1_master_that_was_seen_as_a_replica(t *testing.T) {
	for _, first := range []string{"master first", "replica first"} {
		w := newWorld(t, day)
		w.client().look()
		g := w.client()
		if first == "master first" {
			g.wantRest(0, "")
		}
		g.edit = func(e *Evidence) { *e = Evidence{Replica: true} }
		if v := g.look(); v != (Verdict{}) {
			t.Errorf("%s: a replica is judged, not only refused: %+v", first, v)
		}
		g.edit = nil
		g.wantRest(hold, "was a replica")
		if want := marked("run1", w.time()); w.said() != want {
			t.Errorf("marker %v, want %v", w.marker, want)
		}
		g.watch(hold)
		g.wantRest(0, "")
	}
}

// Also a marker that already calls for a quarantine is too old then.
func TestS1_replica_that_was_a_young_master(t *testing.T) {
	w := newWorld(t, 5*time.Second)
	g := w.client()
	g.look()
	w.pass(5 * time.Second)
	g.edit = func(e *Evidence) { *e = Evidence{Replica: true} }
	g.look()
	g.edit = nil
	g.wantRest(hold, "was a replica")
	if want := marked("run1", w.time()); w.said() != want {
		t.Errorf("marker %v, want %v", w.marker, want)
	}
}

// S4: the restarted master's clock jumps so that it looks old.
func TestS4_restart_plus_step(t *testing.T) {
	step := map[string]func(*world){
		"restart, then step": func(w *world) { w.restart("run2"); w.offset = 300 * time.Second },
		"step, then restart": func(w *world) { w.offset = 300 * time.Second; w.restart("run2") },
		"another client puts the marker back before the step": func(w *world) {
			w.restart("run2")
			w.guard(Config{Hold: hold}).look()
			w.offset = 300 * time.Second
		},
	}
	for name, fault := range step {
		for _, c := range []Config{{Hold: hold}, {Hold: hold, ClockTolerance: tolerance}} {
			w := newWorld(t, day)
			g := w.guard(c)
			g.look()
			w.pass(time.Second)
			fault(w)
			w.pass(time.Second)
			rest := hold
			if c.ClockTolerance > 0 {
				rest += HeardWithin // it has seen the step, too (S70)
			}
			if g.wantRest(rest, ""); t.Failed() {
				t.Fatal(name)
			}
			if c.ClockTolerance > 0 {
				w.guard(c).wantRest(hold, "")
			}
		}
	}
}

// S4: nothing that the master says later shortens what we count.
func TestS4_quarantine_is_counted_on_our_clock(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(Config{Hold: hold})
	g.look()
	w.restart("run2")
	g.wantRest(hold, "")
	w.offset += day
	w.pass(time.Second)
	g.wantRest(hold-time.Second, "")
	w.clock.wall = w.clock.wall.Add(day) // nor our own wall clock
	g.wantRest(hold-time.Second, "")
}

// S4: away for so long that the claim could be true, were it not for the clock
// that nobody watched.
func TestS4_claim_of_a_master_whose_clock_is_not_watched(t *testing.T) {
	w := newWorld(t, day)
	g, watching := w.guard(Config{Hold: hold}), w.client()
	g.look()
	watching.look()
	w.pass(time.Hour)
	w.restart("run2")
	w.guard(Config{Hold: hold}).look()
	w.pass(100 * time.Second)
	watching.wantRest(0, "")
	g.wantRest(hold, "marked anew")
}

// S4: the same, of a clock that could not be read before.
func TestS4_claim_of_a_master_that_did_not_tell_its_time_before(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.edit = func(e *Evidence) { e.Time = time.Time{} }
	g.look()
	g.edit = nil
	w.pass(time.Hour)
	w.restart("run2")
	w.guard(Config{Hold: hold}).look()
	w.pass(time.Second)
	w.offset += 100 * time.Second
	g.wantRest(hold, "marked anew")
}

func TestS4_claim_of_a_master_that_was_known_without_a_marker(t *testing.T) {
	w := newMaster(t, day)
	w.fixed = true
	g := w.guard(Config{Hold: hold})
	g.look()
	w.pass(time.Second)
	w.restart("run2")
	w.marker, w.start = NewMarker("run2", w.time().Add(-day)), w.time().Add(-day)
	g.wantRest(hold, "marked anew")
}

func TestS4_running_quarantine_is_never_shortened(t *testing.T) {
	g := newWorld(t, day).client()
	g.lose(0, 0, "first")
	g.lose(0, 10*time.Second, "second")
	if g.Rest() != hold || g.reason != "first" {
		t.Errorf("for %v because %s", g.Rest(), g.reason)
	}
}

// S5: each client counts the hold that it was given from the same marker.
func TestS5_clients_with_different_holds_share_the_marker(t *testing.T) {
	w := newWorld(t, 0)
	w.client().look()
	w.pass(10 * time.Second)
	w.client().wantRest(20*time.Second, "")
	w.guard(Config{Hold: time.Minute}).wantRest(50*time.Second, "")
	w.guard(Config{Hold: 10 * time.Second}).wantRest(0, "")
}

// S24: FLUSHALL or an operator's DEL takes the marker with it.
func TestS24_marker_is_gone(t *testing.T) {
	for name, edit := range map[string]func(*Evidence){"run known": nil, "run unknown": blindToRun} {
		w := newWorld(t, day)
		g := w.client()
		g.edit = edit
		g.watch(3 * time.Second)
		w.marker = Marker{}
		g.wantRest(hold, "lost its marker")
		if w.marker.RunID == "" || !w.marker.Since.Equal(w.time()) {
			t.Errorf("%s: marker %v, want it since %v", name, w.marker, w.time())
		}
		g.watch(hold)
		g.wantRest(0, "")
	}
}

// As long as there is no marker, nothing would show that the memory is lost
// once more.
func TestS24_marker_that_cannot_be_put_back_keeps_the_master_out(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	w.pass(time.Second)
	w.marker, w.fixed = Marker{}, true
	g.wantRest(hold, "lost its marker")
	g.watch(2 * hold)
	g.wantRest(hold, "could not be given one")
	w.fixed = false
	g.look()
	if back := marked("run1", w.time()); w.said() != back {
		t.Errorf("marker %v, want %v", w.marker, back)
	}
	g.watch(hold)
	g.wantRest(0, "")
}

// S24: another client noticed first and put the marker back.
func TestS24_marker_was_put_back_by_another_client(t *testing.T) {
	w := newWorld(t, day)
	early, late := w.client(), w.client()
	early.look()
	late.look()
	w.pass(10 * time.Second)
	w.marker = Marker{}
	early.wantRest(hold, "lost its marker")
	w.pass(4 * time.Second)
	late.wantRest(hold-4*time.Second, "marked anew")
	w.pass(hold)
	late.wantRest(0, "")
}

// S24: a client of an earlier version, which took the uptime for an age, put the
// marker back. The one that knows better does not believe it, and tells.
func TestS24_marker_was_put_back_by_a_client_that_came_after_the_loss(t *testing.T) {
	w := newWorld(t, day)
	old := w.client()
	old.look()
	w.pass(1200 * time.Millisecond)
	w.marker = NewMarker("run1", w.start)
	w.marker.Since = w.marker.Since.Add(time.Second)
	w.pass(500 * time.Millisecond)
	old.wantRest(hold, "marked anew")
	w.pass(time.Second)
	w.client().wantRest(hold-time.Second, "its marker says")
	marker := w.marker
	old.watch(5 * time.Second)
	if w.marker != marker {
		t.Errorf("the marker is rewritten again and again")
	}
}

// S24: clocks that differ within the tolerance make no two clients rewrite each
// other's marker.
func TestS24_clients_agree_on_the_marker_of_a_loss(t *testing.T) {
	w := newWorld(t, day)
	old := w.client()
	old.look()
	w.pass(1200 * time.Millisecond)
	w.marker = Marker{}
	fresh := w.client()
	fresh.look()
	marker := w.marker
	w.pass(500 * time.Millisecond)
	w.offset += 100 * time.Millisecond
	old.wantRest(hold-600*time.Millisecond, "marked anew")
	fresh.wantRest(hold-500*time.Millisecond, "has no marker")
	if w.marker != marker {
		t.Errorf("marker %v, want %v", w.marker, marker)
	}
}

func TestS24_marker_is_gone_after_it_could_not_be_read_for_once(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	g.edit = func(e *Evidence) { e.Blind, e.Marker = true, Marker{} }
	g.wantRest(0, "")
	g.edit = nil
	w.marker = Marker{}
	g.wantRest(hold, "lost its marker")
}

func TestS3_restart_is_seen_after_the_run_could_not_be_read_for_once(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	blind := func(e *Evidence) { e.Blind, e.Marker = true, Marker{} }
	g.edit = blind
	g.look()
	w.pass(hold)
	g.edit = func(e *Evidence) { blind(e); blindToRun(e) }
	g.look()
	g.edit = blind
	w.restart("run2")
	g.wantRest(hold, "restarted")
}

// A run that we knew and that is hidden now may be another. Its master waits for one restart guard, however
// long it hides the run, and for none if it is durable.
func TestS82_a_run_that_is_hidden_since_may_be_another(t *testing.T) {
	w := newWorld(t, day)
	g, durable := w.client(), w.guard(Config{Hold: hold, Durable: true})
	g.look()
	durable.look()
	durable.edit = blindToRun
	durable.wantRest(0, "")

	for range 2 {
		g.edit = blindToRun
		g.wantRest(hold, "hides its run_id")
		g.watch(hold)
		g.wantRest(0, "")
		g.edit = nil // the same run
		g.wantRest(0, "")
	}
}

// S26: a marker from the future is no reason to hold a master for longer.
func TestS26_clock_set_back_makes_no_longer_quarantine(t *testing.T) {
	w := newWorld(t, day)
	w.marker = NewMarker("run1", w.time().Add(300*time.Second))
	w.guard(Config{Hold: hold}).wantRest(hold, "its marker says")
}

// S26, S2, S27, S28: the clock guard, at a client that was there before.
func TestClockGuard_step_against_our_clock(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*world)
		want  string // empty: no quarantine
	}{
		{"S2 step forward", func(w *world) { w.offset += 600 * time.Millisecond }, "ahead of ours"},
		{"S26, L37 step back", func(w *world) { w.offset -= 300 * time.Second }, ""},
		{"S27 frozen since the last look", func(w *world) { w.offset -= time.Second; w.frozen = w.time() }, "stands still"},
		{"S28 our wall clock stepped too", func(w *world) { w.clock.wall = w.clock.wall.Add(300 * time.Second) }, "ahead of ours"},
		{"within tolerance", func(w *world) { w.offset += 400 * time.Millisecond }, ""},
		{"our wall clock alone", func(w *world) {
			w.clock.wall = w.clock.wall.Add(300 * time.Second)
			w.offset -= 300 * time.Second
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, day)
			g := w.client()
			g.look()
			marker := w.marker
			w.pass(time.Second)
			c.fault(w)
			if c.want == "" {
				g.wantRest(0, "")
				return
			}
			rest := hold
			if strings.HasSuffix(c.want, "ahead of ours") {
				rest += HeardWithin // its offsets are written meanwhile (S70)
			}
			g.wantRest(rest, c.want)
			if w.marker != marker {
				t.Errorf("a client whose own clock may be the wrong one rewrote the marker to %v", w.marker)
			}
		})
	}
}

func TestClockGuard_step_ends_after_the_hold_and_the_next_one_counts_again(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	w.offset += 10 * time.Second
	g.wantRest(hold+HeardWithin, "10s ahead of ours")
	g.watch(hold + HeardWithin)
	g.wantRest(0, "")
	w.offset += 10 * time.Second
	g.wantRest(hold+HeardWithin, "ahead of ours")
}

// The answer to our write was lost: what we then find is our own.
func TestGuard_knows_the_marker_that_it_wrote_itself(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	kept := w.marker
	w.restart("run2")
	w.marker = kept
	g.write(g.Look(g.evidence()))
	w.pass(time.Second)
	g.wantRest(hold-time.Second, "restarted")
}

func TestGuard_does_not_write_a_marker_of_a_run_that_is_over(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(Config{Hold: hold, Durable: true})
	w.fixed = true
	g.look()
	w.restart("run2")
	w.fixed = false
	g.look()
	if w.marker.RunID != "run2" {
		t.Errorf("marker %v", w.marker)
	}
}

// What honest drift may add up to is bounded, however long we were away.
func TestClockGuard_sees_a_step_after_a_long_absence(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	w.pass(time.Hour)
	w.offset += 10 * time.Second
	g.wantRest(hold+HeardWithin, "7.90075s ahead of ours") // certainly
}

// L37: with one master nobody tells which clock is wrong, that master's or our own, and
// since when.
func TestL37_new_client_of_one_master_does_not_wait_because_its_own_clock_is_wrong(t *testing.T) {
	for _, offset := range []time.Duration{3 * time.Second, -3 * time.Second, 300 * time.Second} {
		w := newWorld(t, day)
		w.offset = offset
		w.client().wantRest(0, "")
		f := newFleet(t, 1) // a group of one
		f[0].offset = offset
		f.client(Config{Hold: hold, ClockTolerance: tolerance}, "")[0].wantRest(0, "")
	}
}

func TestS27_clock_that_stands_still_or_runs_wild_stays_out(t *testing.T) {
	for name, rate := range map[string]float64{"stands still": -1, "runs twice as fast": 1, "5% fast": 0.05} {
		w := newWorld(t, day)
		g := w.client()
		out := 0
		for range 10 * 60 {
			w.pass(time.Second)
			w.offset += time.Duration(rate * float64(time.Second))
			if g.look().Rest > 0 {
				out++
			}
		}
		if out < 9*60 {
			t.Errorf("%s: quarantined for %d of 600 seconds", name, out)
		}
	}
}

// A rate within the drift factor is within what every lease allows.
func TestClockGuard_lets_honest_drift_pass(t *testing.T) {
	for _, rate := range []float64{0.0099, -0.0099, 0.0001} {
		w := newWorld(t, day)
		g := w.client()
		for range 3600 {
			w.pass(time.Second)
			w.offset += time.Duration(rate * float64(time.Second))
			if v := g.look(); v.Rest > 0 {
				t.Fatalf("rate %v: %s", rate, v.Reason)
			}
		}
	}
}

// An answer that was long under way tells the time less exactly.
func TestClockGuard_blames_no_clock_for_a_slow_answer(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	slow := func(e *Evidence) { e.Took, e.Time = 900*time.Millisecond, e.Time.Add(-900*time.Millisecond) }
	g.edit = slow
	g.wantRest(0, "")
	g.edit = nil
	w.pass(time.Second)
	g.wantRest(0, "")
	g.edit = slow
	w.pass(time.Second)
	g.wantRest(0, "")
}

// S12: after a suspend every master seems ahead; the safe reading is a step.
func TestClockGuard_treats_a_suspend_like_a_common_step(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	w.clock.wall = w.clock.wall.Add(time.Hour) // mono stood still
	g.wantRest(hold+HeardWithin, "ahead of ours")
}

func TestGuard_unknown_run_is_said(t *testing.T) {
	w := newMaster(t, 0)
	g := w.client()
	g.edit = blindToRun
	g.wantRest(hold, "has no marker")
	if want := marked("", w.time()); w.said() != want {
		t.Errorf("marker %v, want %v", w.marker, want)
	}
	g.watch(hold)
	g.wantRest(0, "run_id unknown")
	other := w.client()
	other.edit = blindToRun
	other.wantRest(0, "")
}

// Where only some clients may read the run_id, the others leave its marker.
func TestGuard_client_that_cannot_read_the_run_leaves_the_marker(t *testing.T) {
	w := newWorld(t, day)
	w.client().look()
	marker := w.marker
	g := w.client()
	g.edit = blindToRun
	g.wantRest(0, "")
	if w.marker != marker {
		t.Errorf("marker %v, want %v", w.marker, marker)
	}
}

// S82: a look that is refused shows no marker. So a message counts only if one was shown within 1.5 s (S49).
func TestS82_a_refused_look_does_not_make_a_message_young(t *testing.T) {
	w := newWorld(t, time.Hour)
	g := w.client()
	g.watch(hold + 10*time.Second)
	ours := wire.Proof(w.marker.String(), w.time())
	if !g.Hears(ours) {
		t.Fatal("a message that comes now does not count")
	}
	w.pass(HeardWithin)
	g.edit = refused
	g.Look(g.evidence())
	w.pass(ms)
	if g.Hears(ours) {
		t.Error("a message counts whose master has shown its marker more than 1.5 s ago")
	}
}

// L85: a client may not read the run any more. It waits, since the master may have restarted. Who can read the
// run knows better.
func TestL85_a_client_from_which_the_run_is_hidden_keeps_nobody_else_waiting(t *testing.T) {
	w := newWorld(t, day)
	g, other := w.client(), w.client()
	g.look()
	other.look()
	before := w.marker
	g.edit = blindToRun
	for range 2 {
		g.look()
		g.wantRest(hold, "hides its run_id")
		if w.marker != before {
			t.Errorf("marked anew: %v, was %v", w.marker, before)
		}
	}
	w.pass(hold)
	g.look()
	g.wantRest(0, "")
	other.look()
	other.wantRest(0, "")
}

// L85: clients that may not read the run use the masters. One that may comes, and the server has been up for
// longer than any lease: nobody waits for it.
func TestL85_a_client_that_can_read_the_run_keeps_nobody_else_waiting(t *testing.T) {
	w := newMaster(t, day)
	w.marker = NewMarker("", w.start.Add(time.Hour)).with(hold, GroupID{})
	other := w.client()
	other.edit = blindToRun
	other.look()
	w.client().wantRest(0, "")
	other.look()
	other.wantRest(0, "run_id unknown: a restart from an old snapshot would go unnoticed")
	w.restart("run2") // and that client, which knows the run now, goes by it
	w.marker = NewMarker("", w.start.Add(-time.Hour)).with(hold, GroupID{})
	w.client().wantRest(hold, "its marker says")
}

// A marker of an unknown run is worth no more than the uptime, less the second
// by which that may be too long (S33), and is put right.
func TestGuard_client_that_can_read_the_run_completes_the_marker(t *testing.T) {
	w := newMaster(t, 10*time.Second)
	w.marker = NewMarker("", w.start.Add(-time.Hour))
	w.client().wantRest(21*time.Second, "its marker says")
	if want := marked("run1", w.start.Add(time.Second)); w.said() != want {
		t.Errorf("marker %v, want %v", w.marker, want)
	}
}

func TestGuard_without_a_readable_marker_watches_the_run(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	w.marker = Marker{}
	g.edit = func(e *Evidence) { e.Blind, e.Marker = true, Marker{} }
	g.wantRest(hold, "cannot be read")
	g.watch(hold)
	g.wantRest(0, "its marker cannot be read")
	w.restart("run2")
	g.wantRest(hold, "restarted")
	if w.marker.RunID != "" {
		t.Errorf("wrote %v over what it cannot read", w.marker)
	}
}

func TestGuard_without_time_still_sees_a_restart(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.edit = func(e *Evidence) { e.Time = time.Time{} }
	g.wantRest(hold, "its marker says") // which tells nothing without a clock
	g.watch(hold)
	g.wantRest(0, "")
	w.restart("run2")
	g.wantRest(hold, "lost its marker")
	if want := marked("run2", time.Time{}); w.said() != want {
		t.Errorf("marker %v, want %v", w.marker, want)
	}
}

func TestGuard_switched_off_only_reports(t *testing.T) {
	w := newMaster(t, 0)
	g := w.guard(Config{ClockTolerance: tolerance})
	if v := g.look(); v != (Verdict{}) {
		t.Errorf("%+v", v)
	}
	w.restart("run2")
	w.offset = 300 * time.Second
	g.wantRest(0, "ahead of ours")
	if w.marker.RunID != "" {
		t.Errorf("wrote %v", w.marker)
	}
	w.marker, w.offset = marked("run2", w.time()), -day // what other clients ask for
	all := (fleet{w}).client(Config{ClockTolerance: tolerance}, "")
	for _, g := range append(all, g) {
		v := g.look()
		if v.Rest > 0 || v.Writes() || g.Rest() > 0 || g.Young() || g.Accepted() != "" || g.Admit(wire.OpAcquire) != nil {
			t.Errorf("rest %v, %v, writes %v, accepts %q", v.Rest, g.Rest(), v.Writes(), g.Accepted())
		}
		w.offset = day
		if !g.Vouched("") || !g.Hears("") || !g.Remained(true, "another") || !g.Timely(w.time()) || !g.TimelyVote(w.time(), 0) {
			t.Error("a vote does not count")
		}
	}
}

// A clock that was set back says nothing either, whatever the others say.
func TestGuard_switched_off_bears_a_clock_that_was_set_back(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(Config{ClockTolerance: tolerance}, "")
	lookAll(guards)
	f.pass(time.Second)
	f[1].offset -= day
	if v := guards[1].look(); v.Rest > 0 || guards[1].Rest() > 0 {
		t.Errorf("rest %v, %v (%s)", v.Rest, guards[1].Rest(), v.Reason)
	}
}

func TestGuard_clock_guard_switched_off(t *testing.T) {
	w := newWorld(t, day)
	w.offset = day
	g := w.guard(Config{Hold: hold})
	g.wantRest(0, "")
	for _, at := range []time.Time{{}, w.time().Add(day), w.time().Add(-day)} {
		if !g.Timely(at) || !g.TimelyVote(at, w.clock.mono) {
			t.Errorf("the clock says %v: a vote does not count", at)
		}
	}
	w.offset = -day
	g.wantRest(0, "")
}

// S27: where the master's clock stands still, two markers are of the same instant,
// and between the two the master has forgotten (seed 36780 of the simulator).
func TestS27_marker_that_another_client_put_back_at_the_same_instant(t *testing.T) {
	w := newMaster(t, day)
	w.frozen = w.time()
	g, other := w.guard(Config{Hold: hold}), w.guard(Config{Hold: hold})
	g.look()
	other.look()
	w.pass(hold)
	g.wantRest(0, "")
	before := w.marker

	w.marker = Marker{} // flushed
	other.look()

	if !w.marker.Since.Equal(before.Since) || w.marker.RunID != before.RunID {
		t.Fatalf("marker %v, want one of the same instant as %v", w.marker, before)
	}
	if g.Vouched(w.marker.String()) {
		t.Errorf("a vote counts that came with marker %v, known is %v", w.marker, before)
	}
	g.wantRest(hold, "marked anew")
}

func TestMarker_text(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 123456789, time.UTC)
	five := GroupOf("orders", "a:1", "b:1", "c:1", "d:1", "e:1")
	for text, m := range map[string]Marker{
		"":                                  {},
		"abc 1714564800123456 0":            NewMarker("abc", at),
		"- 1714564800123456 0":              NewMarker("", at),
		"- 0 0":                             NewMarker("", time.Time{}),
		"abc 1714564800123456 30000000":     NewMarker("abc", at).with(30*time.Second, GroupID{}),
		"abc 0 1 3 - -":                     NewMarker("abc", time.Time{}).with(time.Nanosecond, GroupID{Size: 3}),
		"abc 0 0 5 " + five.Set + " orders": NewMarker("abc", time.Time{}).with(0, five),
		"abc 0 0 3 - - x":                   {RunID: "abc", Group: GroupID{Size: 3}, Nonce: "x"},
		"abc 0 0 0 - - x":                   {RunID: "abc", Nonce: "x"},
	} {
		if m.String() != text {
			t.Errorf("%v written as %q, want %q", m, m.String(), text)
		}
		if back, err := ParseMarker(text); err != nil || back != m {
			t.Errorf("%q read as %v, %v; want %v", text, back, err, m)
		}
	}
	if text := NewMaster("abc", at, 0, GroupID{}).String(); text != "abc +428641200030865 0" {
		t.Errorf("a new master is marked %q", text)
	}
	for text, want := range map[string]Marker{
		"abc +1714564800123456":                           {RunID: "abc", Since: NewMarker("abc", at).Since, New: true},
		"abc 1714564800123456":                            NewMarker("abc", at), // an earlier version's
		"abc 1714564800123456 0 3 f - x and later fields": {RunID: "abc", Since: NewMarker("abc", at).Since, Group: GroupID{Size: 3, Set: "f"}, Nonce: "x"},
	} {
		if m, err := ParseMarker(text); err != nil || m != want {
			t.Errorf("%q read as %v, %v", text, m, err)
		}
	}
	for _, text := range []string{
		"abc", " 5", "abc x", "abc -5", "client:17", "abc 99999999999999999999",
		"abc 5 x", "abc 5 -1", "abc 5 99999999999999999", "abc 5 0 x y z", "abc 5 0 -1 y z",
	} {
		if m, err := ParseMarker(text); err == nil {
			t.Errorf("%q read as %v", text, m)
		}
	}
}

// S50: a master that was a replica in between has the same run_id, and may have the very
// marker that it had.
func TestS50_a_master_that_was_a_replica_in_between_is_quarantined(t *testing.T) {
	for what, again := range map[string]func(w *world, known *watched) *watched{
		"a client that knew it": func(_ *world, known *watched) *watched { return known },
		"a new client":          func(w *world, _ *watched) *watched { return w.client() },
	} {
		for _, age := range []time.Duration{day, time.Second} { // of its memory
			w := newWorld(t, age)
			known := w.client()
			known.look()
			known.watch(10 * time.Second)
			w.promotion = "replid1"
			if known.Remained(false, w.promotion) {
				t.Errorf("%s: a vote from after the promotion counts", what)
			}

			g := again(w, known)
			g.look()

			g.wantRest(hold, "was a replica")
			if !w.marker.After("replid1") {
				t.Errorf("%s: the marker is %v", what, w.marker)
			}
			for _, other := range []*watched{g, known, w.client()} { // all that come later go by the marker
				w.pass(time.Second)
				other.look()
				if other.Rest() == 0 || other.Rest() > hold {
					t.Errorf("%s: rest %v", what, other.Rest())
				}
			}
			w.pass(hold)
			w.client().wantRest(0, "")
			g.wantRest(0, "")
		}
	}
}

// L57: a client saw a replica, and comes back when others have long marked the master that it is
// again. Their marker tells since when it has its keys.
func TestL57_who_saw_a_replica_believes_the_marker_that_others_wrote_since(t *testing.T) {
	for _, away := range []time.Duration{time.Second, hold + time.Second} {
		w := newWorld(t, day)
		stays, leaves := w.client(), w.client()
		stays.watch(10 * time.Second)
		leaves.watch(10 * time.Second)
		w.replica = true
		stays.look()
		leaves.look()
		w.replica, w.promotion = false, "replid1"
		w.pass(time.Second)
		stays.look()
		stays.wantRest(hold, "was a replica")
		marked := w.marker
		stays.watch(away)

		leaves.look()

		if w.marker != marked {
			t.Errorf("after %v: marked again: %v, was %v", away, w.marker, marked)
		}
		for _, g := range []*watched{stays, leaves} {
			if rest, most := g.Rest(), max(0, hold-away); rest > most {
				t.Errorf("after %v: rests for another %v, want no more than %v", away, rest, most)
			}
		}
	}
}

// L57: a client saw a replica, and comes back when another server has taken its place, which others
// have marked. A durable master has the marker from before in its next run.
func TestL57_who_saw_a_replica_believes_the_marker_of_a_later_run(t *testing.T) {
	for _, durable := range []bool{false, true} {
		w := newWorld(t, day)
		stays, leaves := w.client(), w.client()
		leaves.config.Durable = durable
		stays.watch(10 * time.Second)
		leaves.watch(10 * time.Second)
		w.replica = true
		leaves.look()
		w.replica = false
		w.restart("run2")
		stays.look()
		stays.wantRest(hold, "lost its marker")
		marked := w.marker
		stays.watch(hold + time.Second)

		leaves.look()

		if again := w.marker != marked; again != durable {
			t.Errorf("durable %v: marked again %v: %v, was %v", durable, again, w.marker, marked)
		}
		if rest := leaves.Rest() > 0; rest != durable {
			t.Errorf("durable %v: rests for %v", durable, leaves.Rest())
		}
	}
}

// L57: the marker of the run that was the replica may be from before.
func TestS50_a_replica_of_the_same_run_is_not_believed(t *testing.T) {
	w := newWorld(t, day)
	stays, leaves := w.client(), w.client()
	leaves.watch(10 * time.Second)
	w.restart("run2")
	stays.look() // it marks the new run
	stays.watch(hold + time.Second)
	w.replica = true
	leaves.look()
	w.replica = false
	leaves.look()
	leaves.wantRest(hold, "was a replica")
}

// replicaThatRestarted is a master which one client saw as a replica, before its present run.
func replicaThatRestarted(t *testing.T) (w *world, stays, leaves *watched) {
	t.Helper()
	w = newWorld(t, day)
	stays, leaves = w.client(), w.client()
	leaves.watch(10 * time.Second)
	w.replica = true
	leaves.look()
	w.replica = false
	w.restart("run2")
	return w, stays, leaves
}

// L57: it was a replica again, in a run that it did not tell: that may be the run of the marker.
func TestS50_a_replica_of_an_unknown_run_is_not_believed(t *testing.T) {
	w, stays, leaves := replicaThatRestarted(t)
	stays.look() // it marks the new run
	stays.watch(hold + time.Second)
	w.replica = true
	leaves.edit = func(e *Evidence) { e.RunID = "" }
	leaves.look()
	w.replica, leaves.edit = false, nil
	leaves.look()
	leaves.wantRest(hold, "was a replica")
}

// L57: a marker that names no run may have come from the server that the replica followed.
func TestS50_who_saw_a_replica_believes_no_marker_of_an_unknown_run(t *testing.T) {
	_, stays, leaves := replicaThatRestarted(t)
	stays.edit = func(e *Evidence) { e.RunID = "" }
	stays.look()
	stays.watch(hold + time.Second)
	leaves.look()
	leaves.wantRest(hold, "was a replica")
}

// S50: where nothing tells when a replica was made a master, no marker is from after that.
func TestS50_a_replica_whose_promotion_is_not_known(t *testing.T) {
	for _, before := range []string{"", "replid0"} { // its last promotion
		w := newWorld(t, day)
		w.promotion, w.marker.Nonce = before, "nonce."+before
		g := w.client()
		g.wantRest(0, "")
		w.replica = true
		g.look()
		w.replica, w.promotion = false, ""
		g.wantRest(hold, "was a replica")
		w.client().wantRest(hold, "")
	}
}

// S50: the first replica that a master gets, and the end of its backlog, change its
// replication ID too, and are no reason for a quarantine.
func TestS50_what_is_no_promotion(t *testing.T) {
	const none = "0000000000000000000000000000000000000000"
	for info, want := range map[string]string{
		"role:master\r\nmaster_replid:abc\r\nmaster_replid2:" + none + "\r\n": "",
		"role:master\r\nmaster_replid:abc\r\nmaster_replid2:def\r\n":          "abc",
		"role:master\r\n": "",
		"":                "",
	} {
		if replica, promotion := wire.ReadReplication(info); replica || promotion != want {
			t.Errorf("%q: replica %v, promotion %q; want %q", info, replica, promotion, want)
		}
	}
	if replica, _ := wire.ReadReplication("role:slave\r\nmaster_replid:abc\r\n"); !replica {
		t.Error("a replica is taken for a master")
	}
}

// S50: as long as the marker of the loss cannot be written, the loss lasts.
func TestS50_the_marker_that_came_with_another_servers_keys_cannot_be_replaced(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	w.promotion, w.fixed = "replid1", true
	for range 3 {
		g.look()
		g.wantRest(hold, "was a replica")
		w.pass(time.Second)
	}
	w.fixed = false
	g.look()
	w.client().wantRest(hold, "")
}

// L43: a durable master has restarted, and a client that is new looks before those that
// know it. They must recognise the marker that the new client completes.
func TestL43_new_client_that_looks_first_at_a_durable_master_quarantines_nobody(t *testing.T) {
	w := newWorld(t, day)
	durable := func() *watched { return w.guard(Config{Hold: hold, ClockTolerance: tolerance, Durable: true}) }
	known := durable()
	known.look()
	known.watch(10 * time.Second)
	kept := w.marker
	w.restart("run2")
	w.marker = kept

	durable().wantRest(0, "")

	known.wantRest(0, "")
	durable().wantRest(0, "")
	if !w.marker.Of("run2") || w.marker.RunID == UnknownRun {
		t.Errorf("marker %v is not of the new run", w.marker)
	}
}

// A client meets a new master and waits. Meanwhile an operator declares the master new: the
// client waits no longer than it would have, and new ones not at all.
func TestGuard_who_waits_for_a_new_master_waits_no_longer_when_it_is_declared_new(t *testing.T) {
	w := newMaster(t, day)
	g := w.guard(Config{Hold: hold})
	g.look()
	w.pass(hold / 2)
	g.look()
	if !w.marker.Unused(w.time()) {
		t.Fatalf("Init would not replace %v", w.marker)
	}
	w.marker = NewMaster(w.run, w.time(), 0, GroupID{})

	g.look()

	if rest := g.Rest(); rest != hold/2 {
		t.Errorf("rests for another %v, want %v", rest, hold/2)
	}
	newcomer := w.guard(Config{Hold: hold})
	newcomer.look()
	if rest := newcomer.Rest(); rest != 0 {
		t.Errorf("for a new client it rests for %v", rest)
	}
}

// What a client knew before is no new master, whatever an operator says.
func TestGuard_who_knew_a_master_does_not_believe_that_it_is_new(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(Config{Hold: hold})
	g.look()
	w.pass(time.Second)
	w.marker = Marker{}
	g.look()
	if w.marker.Unused(w.time()) {
		t.Errorf("Init would replace %v", w.marker)
	}
	w.pass(hold / 2)
	w.marker = NewMaster(w.run, w.time(), 0, GroupID{})

	g.look()

	if rest := g.Rest(); rest != hold {
		t.Errorf("rests for another %v, want %v", rest, hold)
	}
}

// L81: a marker that another client wrote after the master had answered our look is believed, although we
// have heard the answer only since: we stood still. A clock that runs fast within what is allowed makes the
// marker seem older, too. Otherwise who stood still has all clients begin the quarantine anew.
func TestL81_marker_that_was_written_as_we_looked_begins_no_new_quarantine(t *testing.T) {
	for _, c := range []struct {
		took, written time.Duration // before the answer
		fast          time.Duration // how far the clock drifts until the next look
		rest          time.Duration
	}{
		{0, 0, 0, 0},
		{10 * ms, 5 * ms, 0, 0},
		{hold, 0, 0, 0},
		{hold, hold - ms, 0, 0},
		{hold, hold + ms, 0, hold},
		{0, 0, 300 * ms, 0},
	} {
		w := newWorld(t, day)
		away, other := w.client(), w.client()
		away.look()
		other.look()
		w.pass(time.Second)
		look := away.evidence()
		w.pass(c.took)
		w.marker = Marker{}
		other.look()
		w.marker.Since = NewMarker("", w.time().Add(-c.written)).Since
		look.Took = c.took
		away.Look(look)

		w.pass(hold + time.Second)
		w.offset += c.fast
		marker := w.marker
		if v := away.look(); v.Rest != c.rest || (w.marker == marker) != (c.rest == 0) {
			t.Errorf("%+v: rest %v, want %v; marker %v, before %v", c, v.Rest, c.rest, w.marker, marker)
		}
	}
}

// A master may vote again when a look admits it: the quarantine is over, and the clocks are compared. Its
// observer and the callers that wait are told of that, and not of the end of the quarantine.
func TestGuard_says_when_the_master_may_vote_again(t *testing.T) {
	f := newFleet(t, 3)
	f.settledClient(t)
	f.pass(hold + time.Second)
	guards := f.client(careful, "")
	admitted := func(i int) bool {
		t.Helper()
		v, err := guards[i].look(), guards[i].Admit(wire.OpAcquire)
		if v.Admitted && err != nil {
			t.Errorf("is admitted, and refuses a vote: %v", err)
		}
		return v.Admitted
	}
	if admitted(0) {
		t.Error("before any other clock was read")
	}
	if v, err := guards[0].look(), guards[0].Admit(wire.OpAcquire); v.Rest != 0 || err == nil {
		t.Fatalf("rest %v, and votes: %v; want a master that is not quarantined and must not vote", v.Rest, err)
	}
	if admitted(1) || admitted(2) {
		t.Error("a master that never was kept from voting is admitted")
	}
	if !admitted(0) || admitted(0) {
		t.Error("all clocks are compared: want that said once")
	}
}

// The same after a quarantine.
func TestGuard_says_when_a_quarantine_is_over(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	w.restart("run2")
	for range 2 {
		if v := g.look(); v.Rest == 0 || v.Admitted {
			t.Errorf("rest %v, admitted %v in the quarantine", v.Rest, v.Admitted)
		}
	}
	w.pass(hold)
	if v := g.look(); v.Rest != 0 || !v.Admitted {
		t.Errorf("rest %v, admitted %v at its end", v.Rest, v.Admitted)
	}
	if g.look().Admitted {
		t.Error("is admitted twice")
	}
}
