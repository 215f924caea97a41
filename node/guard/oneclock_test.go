package guard

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

var (
	stories   = flag.Int("stories", 500, "how many stories of one wrong clock are told")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first one")
)

// The promise of docs/guarantees.md (One wrong clock), asked of the guards alone: in a story one
// master's clock is set, slewed or stopped, and clients come, look, pause, are cut off, lock and
// renew at random. No client gets the lock while the lease of another is valid in true time.
func TestOne_wrong_clock_makes_no_two_holders(t *testing.T) {
	tellStories(t, func(*story) {})
}

// The same, where all masters' clocks are right, and the clock of one client runs fast. A master restarts
// without its data again and again, and that client counts its quarantine too fast (S77).
func TestOne_fast_client_makes_no_two_holders(t *testing.T) {
	tellStories(t, func(s *story) {
		s.hasty, s.until, s.restarts = s.dice.IntN(len(s.clients)), 2*time.Minute, 300
	})
}

// tellStories tells stories that begin as begin has them begin.
func tellStories(t *testing.T, begin func(*story)) {
	leases := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*stories); seed++ {
		s := newStory(t, seed)
		begin(s)
		for s.now() < s.until && s.broken == "" {
			s.tick()
		}
		if leases += s.leases; s.broken != "" {
			t.Errorf("seed %d: %s\n%s", seed, s.broken, s.told)
		}
	}
	if leases < 3**stories {
		t.Errorf("%d leases in %d stories", leases, *stories)
	}
}

// story is a run of some clients and masters, of which one has a clock that goes wrong.
type story struct {
	dice     *rand.Rand
	fleet    fleet
	keys     []key // the lock, at each master
	wrong    int   // the master whose clock goes wrong
	rate     float64
	gained   time.Duration // when its clock last went ahead
	turn     time.Duration // when it goes wrong next
	seen     time.Duration // when the witness last looked at it
	moved    time.Duration // how far it is from where it was
	low      time.Duration // from where, and
	high     time.Duration // to where it went ahead lately
	hasty    int           // the client whose own clock runs fast instead; negative: none
	fast     float64       // how fast
	restarts int           // once in so many moments that master restarts
	clients  []*caller
	witness  *caller // is connected to all masters all the time; nil: nobody is
	until    time.Duration
	leases   int
	told     string
	broken   string
}

// key is what a master stores of the lock.
type key struct {
	value int // zero: never set
	ends  time.Time
}

// caller is a client of the story. It has a guard for each master.
type caller struct {
	id      int
	own     *guardClock
	guards  []*watched
	reaches []bool
	phase   []time.Duration // when it looks next, by its own clock
	acts    time.Duration   // when it tries, renews or lets go next
	away    time.Duration   // until when it stands still, or is cut off from all
	value   int             // zero: it holds nothing
	valid   time.Duration   // until when, by its own clock
	letsGo  time.Duration
}

const (
	storyTolerance = drift.Tolerance
	storyTTL       = 5 * time.Second
	beat           = 20 * ms
	quiet          = storyTTL + 2*time.Second // what a group that is in use has behind it
)

func newStory(t *testing.T, seed uint64) *story {
	s := &story{dice: rand.New(rand.NewPCG(seed, 0)), until: 60 * time.Second, hasty: -1, fast: 1, restarts: 2000}
	n := 3 + 2*s.dice.IntN(2)
	s.fleet = apartBy(t, n, ms)
	for _, w := range s.fleet {
		w.marker.Hold = storyTTL
	}
	s.keys = make([]key, n)
	s.wrong = s.dice.IntN(n)
	if s.one(2) {
		s.witness = s.comer(0)
		for i := range s.witness.reaches {
			s.witness.reaches[i] = true
		}
	}
	for i := range 2 + s.dice.IntN(3) {
		s.clients = append(s.clients, s.comer(i))
	}
	s.turn = 8*time.Second + s.upTo(10*time.Second)
	return s
}

func (s *story) now() time.Duration                 { return s.fleet[0].clock.mono }
func (s *story) upTo(d time.Duration) time.Duration { return time.Duration(s.dice.Int64N(int64(d))) }
func (s *story) one(in int) bool                    { return s.dice.IntN(in) == 0 }
func (s *story) tell(format string, args ...any) {
	s.told += fmt.Sprintf("%8.3f ", s.now().Seconds()) + fmt.Sprintf(format, args...) + "\n"
}

// comer is a client that has just started.
func (s *story) comer(id int) *caller {
	c := &caller{id: id, own: &guardClock{wall: s.fleet[0].clock.wall, mono: s.now()}}
	c.guards = s.fleet.clientBy(c.own, Config{Hold: storyTTL, ClockTolerance: storyTolerance}, s.fleet.group(""))
	c.reaches = make([]bool, len(c.guards))
	some := s.dice.Perm(len(c.guards)) // a quorum, mostly with the wrong clock in it
	if at := slices.Index(some, s.wrong); !s.one(4) {
		some[0], some[at] = some[at], some[0]
	}
	some = some[:len(some)/2+1+s.dice.IntN(5)/4]
	if s.one(10) {
		some = some[:1]
	}
	for _, i := range some {
		c.reaches[i] = true
	}
	for range c.guards {
		c.phase = append(c.phase, s.now()+s.upTo(200*ms))
	}
	if c.acts = s.now() + s.upTo(time.Second); s.one(2) {
		c.acts = s.now() + s.upTo(300*ms) // before it has looked again
	}
	return c
}

// tick lets a moment pass, and all that is due happen.
func (s *story) tick() {
	s.pass(beat)
	s.fleet[s.wrong].offset += time.Duration(s.rate * float64(beat))
	s.moved += time.Duration(s.rate * float64(beat))
	if s.rate > 0 {
		s.gained, s.high = s.now(), max(s.high, s.moved)
	}
	if s.now() >= s.turn {
		s.goWrong()
	}
	if s.now() > quiet && s.one(s.restarts) {
		s.restart()
	}
	if s.now() > quiet && s.one(500) {
		s.idle()
	}
	if s.witness != nil {
		s.expire()
		s.look(s.witness)
	}
	for i, c := range s.clients {
		switch {
		case s.now() < quiet:
			s.look(c)
			s.act(c)
		case s.one(2000):
			s.tell("client %d starts anew", i)
			s.clients[i] = s.comer(i)
			s.clients[i].away = c.away
		case s.one(1500) && s.now() >= c.away:
			c.away = s.now() + s.upTo(15*time.Second)
			s.tell("client %d is away until %v", i, c.away)
		case s.one(6000):
			at := s.dice.IntN(len(c.reaches))
			c.reaches[at] = !c.reaches[at]
			s.tell("client %d reaches %d: %v", i, at, c.reaches[at])
		case s.now() >= c.away:
			s.look(c)
			s.act(c)
		}
	}
}

// pass lets time pass for everybody.
func (s *story) pass(d time.Duration) {
	s.fleet.pass(d)
	for i, c := range append(s.clients, s.witness) {
		if c == nil {
			continue
		}
		own := d
		if i == s.hasty {
			own = time.Duration(s.fast * float64(d))
		}
		c.own.mono += own
		c.own.wall = c.own.wall.Add(own)
	}
}

// restart has the master of the wrong clock restart without its data.
func (s *story) restart() {
	w := s.fleet[s.wrong]
	w.restart(fmt.Sprint("run", s.wrong, "at", s.now().Milliseconds()))
	w.offsets, s.keys[s.wrong] = "", key{}
	s.tell("%d restarts without its data", s.wrong)
}

// idle lets time pass in which nobody looks, but a witness. Then all clients are new, and come one
// after another.
func (s *story) idle() {
	if s.witness != nil || s.rate != 0 || s.now()-s.gained < 2*HeardWithin {
		return
	}
	d := storyTTL + s.upTo(time.Hour)
	s.pass(d)
	s.until, s.turn = s.until+d, s.now()+s.upTo(3*time.Second)
	s.tell("nobody has looked for %v", d)
	for i := range s.clients {
		s.clients[i] = s.comer(i)
		s.clients[i].away = s.now() + time.Duration(s.dice.IntN(2))*s.upTo(2*storyTTL)
	}
}

// expire deletes the keys that have ended. Where nobody looks all the time, they come back with
// a clock that comes back: that it went ahead would be unseen (S69).
func (s *story) expire() {
	for i, k := range s.keys {
		if k.value != 0 && !s.fleet[i].time().Before(k.ends) {
			s.keys[i] = key{}
		}
	}
}

// goWrong sets the wrong clock, or lets it run at another rate. It may be set back to where it was,
// with a restart or without. It never goes ahead and back again before everybody has looked (S69),
// unless it goes further back than that, and the witness has seen it ahead.
func (s *story) goWrong() {
	s.turn = s.now() + s.upTo(8*time.Second)
	if s.hasty >= 0 {
		s.fast = []float64{1, 1.02, 1.1, 1.3, 2, 10}[s.dice.IntN(6)]
		s.tell("client %d runs at %v", s.hasty, s.fast)
		if s.one(2) {
			s.restart()
		}
		return
	}
	by, rate := s.upTo(7*time.Second)-3500*ms, 0.0
	switch s.dice.IntN(9) {
	case 0:
		by = s.upTo(200*ms) - 100*ms
	case 1:
		by, rate = 0, []float64{-1, -0.1, -0.02, 0.02, 0.1, 1}[s.dice.IntN(6)]
	case 2:
		by = s.upTo(40*time.Second) - 20*time.Second
	case 3, 4, 5, 6: // back to where it was
		if s.moved != 0 {
			by = -s.moved
		}
	}
	lately := s.now()-s.gained < 2*HeardWithin
	lands := s.moved + by
	switch {
	case s.now() < quiet, by > 0 && s.rate < 0:
		return
	case lately && (rate < s.rate || s.low-100*ms < lands && lands < s.high || by < 0 && s.seen <= s.gained):
		return
	}
	if by > 0 || rate > 0 {
		if !lately {
			s.low, s.high = s.moved, lands
		}
		s.gained, s.low, s.high = s.now(), min(s.low, s.moved), max(s.high, lands)
	}
	s.rate = rate
	s.fleet[s.wrong].offset += by
	s.moved += by
	s.tell("clock of %d set by %v, off by %v, at rate %v", s.wrong, by, s.moved, rate)
	if by < 0 && s.one(4) {
		s.restart()
	}
	if s.one(2) {
		s.turn = s.now() + s.upTo(2*time.Second)
	}
}

func (s *story) look(c *caller) {
	for i, g := range c.guards {
		if now := c.own.mono; c.reaches[i] && now >= c.phase[i] {
			c.phase[i] += time.Second
			if c.phase[i] < now {
				c.phase[i] = now + time.Second
			}
			took := s.upTo(3 * ms)
			if s.one(10) {
				took *= 100
			}
			g.edit = func(e *Evidence) { e.Took, e.Time = took, e.Time.Add(-s.upTo(took+1)) }
			g.look()
			if c == s.witness && i == s.wrong {
				s.seen = s.now()
			}
		}
	}
}

// act does what is due: a try, a renewal, or the end.
func (s *story) act(c *caller) {
	if s.now() < c.acts {
		return
	}
	switch {
	case c.value == 0:
		c.acts = s.now() + s.upTo(400*ms)
		s.try(c)
	case c.own.mono >= c.valid:
		c.value = 0
	case s.now() >= c.letsGo:
		s.release(c)
		c.acts = s.now() + s.upTo(2*time.Second)
	default:
		c.acts = s.now() + storyTTL/3
		s.renew(c)
	}
}

func (s *story) try(c *caller) {
	s.leases++
	value := s.leases
	if s.votes(c, wire.OpAcquire, value) < len(s.keys)/2+1 {
		c.value = value
		s.release(c)
		s.leases--
		return
	}
	for _, other := range s.clients {
		if other != c && other.value != 0 && other.valid > other.own.mono {
			s.broken = fmt.Sprintf("client %d gets the lock, which client %d has until %v", c.id, other.id, other.valid)
		}
	}
	c.value, c.valid = value, c.own.mono+s.validity()
	c.letsGo = s.now() + s.upTo(3*storyTTL)
	s.tell("client %d gets the lock until %v, %v", c.id, c.valid, s.keys)
	if s.now() >= quiet && !s.one(3) { // as much as can go wrong
		c.away, s.turn = s.now()+storyTTL+s.upTo(10*time.Second), s.now()+s.upTo(2*time.Second)
		s.tell("client %d is away until %v", c.id, c.away)
	}
	c.acts = s.now() + s.upTo(storyTTL/3)
}

func (s *story) validity() time.Duration {
	return drift.Budget(storyTTL, drift.DefaultFactor) - drift.UnnoticedBy(drift.DefaultFactor)
}

func (s *story) renew(c *caller) {
	if s.votes(c, wire.OpExtend, c.value) >= len(s.keys)/2+1 {
		c.valid = max(c.valid, c.own.mono+s.validity())
		s.tell("client %d renews until %v", c.id, c.valid)
	}
}

// votes asks all masters that the client reaches, and counts the votes.
func (s *story) votes(c *caller, op wire.Op, value int) (n int) {
	for i, g := range c.guards {
		w := g.w
		if !c.reaches[i] || g.Admit(op) != nil {
			continue
		}
		g.edit = nil
		g.beforeVote()
		k := &s.keys[i]
		ours := k.value == value && w.time().Before(k.ends)
		free := k.value == 0 || !w.time().Before(k.ends)
		if op == wire.OpAcquire && !free || op == wire.OpExtend && !ours {
			continue
		}
		if ends := w.time().Add(storyTTL); op == wire.OpAcquire || ends.After(k.ends) {
			*k = key{value, ends}
		}
		timely := g.TimelyVote(w.time(), g.Now().Monotonic())
		young, err := g.Weigh(op, timely && g.Vouched(w.marker.String()))
		if !timely {
			g.edit = nil
			g.look()
		}
		if err == nil && !young {
			n++
		}
	}
	return n
}

func (s *story) release(c *caller) {
	for i := range c.guards {
		if c.reaches[i] && s.keys[i].value == c.value {
			s.keys[i] = key{}
		}
	}
	c.value = 0
}
