package promises

import (
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Scene is one schedule that runs: its world, its masters and its clients.
type Scene struct {
	Schedule *plan.Schedule
	Config   *plan.Config
	World    *world.World
	Masters  []*fleet.Master
	Clients  []*Client
	Check    *checker
	storages map[string]*Storage // by lock
	Latency  plan.Latency
	Stats    *tally.Stats
	Healed   bool // the faults are over

	Strike func(f *plan.Fault) // makes a fault happen now
	Left   func(cl *Claim)     // called for a hold that its owner no longer relies on
}

func NewScene(s *plan.Schedule) *Scene {
	t := &Scene{
		Schedule: s,
		Config:   s.Config,
		World:    world.New(),
		Stats:    tally.New(),
		Latency:  s.Latency(),
		storages: map[string]*Storage{},
		Left:     func(*Claim) {},
	}
	t.Check = newChecker(t)
	return t
}

// Apart reports whether there are several groups of masters. Each name is in one of them, or in none.
// Where it is the checks do not know. So they look at leases and at storages, and not at what masters
// keep.
func (t *Scene) Apart() bool { return t.Config.Groups > 1 }

// Client is a peer, and what the checks have seen of it.
type Client struct {
	*fleet.Client
	check *checker

	well   quorum.Set // the masters that it can talk to and that may grant
	ill    quorum.Set // those for which that is not so
	looked uint64     // when it was found: see checker.looks

	unproven map[int]time.Duration // by master: until when its extensions may count for nothing (S35), as its last reply said

	Sizes       map[string]int           // of the semaphores of which it was told another one than all began with
	Released    int                      // how many releases it has given to masters
	Asked       int                      // how many commands it has given to masters
	handles     *extension               // it is handed a reply to this renewal
	inspecting  *inspection              // the last Inspect
	Resizing    *Replies                 // to a Resize that is watched
	Unlocked    map[string]bool          // values of leases that were unlocked, and may not be renewed
	Listens     map[string]bool          // values of leases whose holder wants to know of requests
	over        map[string]bool          // values of leases whose end the observer was told of
	longest     map[string]time.Duration // by value: the longest TTL that a master was asked for
	kept        map[string]time.Duration // by value: until when masters keep the lock, once they were asked
	debts       debts
	counted     int                   // asked, when its rounds were counted last
	cached      map[string]int        // by value: what Uneven was when the masters were asked for a cached lock
	otherwise   map[string]quorum.Set // by value: the masters with another number of permits than it asked for
	told        []map[leading]uint64  // by each master, when it looked who leads an election: the highest token of each leader
	Born        time.Duration         // when its process began
	held        time.Duration         // when masters that may not grant left it no quorum
	GotOn       time.Duration         // when a workload last got a lease or had waited of its own accord
	letGoOn     time.Duration         // when it last gave a lease back, or lost it
	mayHaveKeys bool                  // it has stored some since we last looked
}

func NewClient(p *fleet.Client, k *checker) *Client {
	c := &Client{Client: p, check: k, Sizes: map[string]int{}, unproven: map[int]time.Duration{}}
	p.Watch = c
	return c
}

// Connect makes the links and the redlock.Client, as a process does that starts.
func (c *Client) Connect() error {
	c.inspecting, c.Resizing = nil, nil
	c.mayHaveKeys, c.Born = false, c.World.Now
	c.counted, c.debts, c.otherwise, c.cached = 0, debts{}, map[string]quorum.Set{}, map[string]int{}
	c.told = make([]map[leading]uint64, len(c.Masters))
	for i := range c.told {
		c.told[i] = map[leading]uint64{}
	}
	c.Unlocked, c.over, c.longest = map[string]bool{}, map[string]bool{}, map[string]time.Duration{}
	c.kept, c.Listens = map[string]time.Duration{}, map[string]bool{}
	return c.Client.Connect()
}

// KeptOut implements watcher.
func (c *Client) KeptOut(l *fleet.Link) { c.check.keptOut(l) }

// Healed implements watcher.
func (c *Client) Healed() bool { return c.check.scene.Healed }

// Strike implements watcher.
func (c *Client) Strike(f *plan.Fault) { c.check.scene.Strike(f) }

func (c *Client) Observe(e redlock.Event) {
	c.count(e)
	if e.Kind == redlock.LeaseLost || e.Kind == redlock.LeaseReleased {
		c.over[e.Value] = true
	}
	switch {
	case e.Kind == redlock.NodeRepaired && e.Err == nil:
		c.Stats.Repaired++
	case e.Kind == redlock.LeaseRenewed && e.Err == nil:
		c.Stats.Renewals++
		if c.over[e.Value] && c.Preemption.Every == 0 {
			c.Blame("the observer is told that a lease is renewed which had ended")
		}
	case e.Kind == redlock.LeaseLost:
		c.Stats.Losses++
		if l, ok := e.Context.Value(LossKey{}).(*Loss); ok {
			l.Noticed, l.At = true, c.World.Now
		}
	case e.Kind == redlock.LockFailed:
		c.Stats.AttemptsFailed++
	}
}

// AllWell reports whether nothing is wrong with any client or master, and nothing was that still
// has consequences; and whether all are notified of their turn.
func (t *Scene) AllWell() bool {
	if t.Config.Polling || t.Config.Mute || t.Config.Deaf > 0 {
		return false
	}
	if t.World.Now <= t.World.Rough+t.longestHold()+looks+t.Check.rest()+t.Check.attempt() {
		return false // a client that lets no master vote is in no queue, and pauses even after that
	}
	for _, c := range t.Clients {
		if !t.Check.Calm(c) || c.Preemption.Every > 0 || c.Closing || c.Host.Rests() || c.Host.Down || c.Host.Hangs() {
			return false
		}
	}
	return true
}

// Leads returns the only valid hold, and its value, if a quorum of masters stores it.
func (k *checker) Leads() (only *Claim, value string) {
	for _, cl := range k.Claims {
		if cl.Hold.Valid() {
			if only != nil {
				return nil, ""
			}
			only = cl
		}
	}
	if only == nil {
		return nil, ""
	}
	n := 0
	for _, m := range k.scene.Masters {
		if e := m.Keys.Find(only.Names[0]); e != nil && e.Value == only.Value {
			n++
		}
	}
	if n < quorum.Size(len(k.scene.Masters)) {
		return nil, ""
	}
	return only, only.Value
}

// StoredAnywhere returns the values of a lock that any master stores.
func (k *checker) StoredAnywhere(name string) map[string]bool {
	values := map[string]bool{}
	for _, m := range k.scene.Masters {
		if e := m.Keys.Find(name); e != nil {
			values[e.Value] = true
		}
	}
	return values
}

// Back is how long it takes to connect again after an outage, and to renew a lease.
func (k *checker) Back() time.Duration { return k.back(nil) }

// asksForRequests reports a client that asks for requests, and has no lease whose holder wants
// to know of them.
func (c *Client) asksForRequests(cmd *wire.Command) {
	if cmd.Name != "GET" || !strings.HasPrefix(cmd.Keys[0], wire.Requested("", "").Keys[0]) {
		return
	}
	for value := range c.Listens {
		if wire.Requested("", value).Keys[0] == cmd.Keys[0] {
			return
		}
	}
	c.Blame("it looks for requests at " + cmd.Keys[0] + ", and nobody wants to know of them")
}
