package work

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// handing has leaders transfer the election, and other clients ask them to resign, in half of the
// schedules. It has dice of its own, so that the throws of the others do not change.
type handing struct {
	on    bool
	queue map[int]*campaigner // by client: who campaigns
	turn  *campaigner         // the last choice while all was well, until a client leads
	wish  *wish               // the last one
	sent  map[string]*wish    // by their reasons
}

// campaigner is a client that campaigns.
type campaigner struct {
	client *promises.Client
	life   uint32
	since  time.Duration
}

// wish is a request to resign.
type wish struct {
	reason string
	began  time.Duration   // when the call did
	over   time.Duration   // when the call returned; 0: not yet
	made   bool            // it returned nil
	stored map[string]bool // the values of the leaders at a master then
	lapses int             // of all masters then
	until  time.Duration   // when the lease of the holder would have ended without another renewal
	to     string          // the value of the holder, which a quorum of masters stored before and after
}

func (h *handing) begin(p *promises.Caller) {
	if h.queue == nil {
		h.on = p.Scene.Config.Swarm && !p.Scene.Config.Usual && world.NewDice(p.Scene.Schedule.Seed, "handing").Chance(500)
		h.queue, h.sent = map[int]*campaigner{}, map[string]*wish{}
	}
}

// campaigns notes that a client campaigns, until over is called.
func (h *handing) campaigns(p *promises.Caller) (over func()) {
	c := &campaigner{p.Client, p.Host.Life, p.Scene.World.Now}
	h.queue[p.Client.Index] = c
	return func() {
		if h.queue[p.Client.Index] == c {
			delete(h.queue, p.Client.Index)
		}
	}
}

// waits reports whether a client still campaigns, as it did then, and is sure to be queued.
func (h *handing) waits(c *campaigner, now, trips time.Duration) bool {
	return c != nil && h.queue[c.client.Index] == c && c.client.Host.Life == c.life && now-c.since > trips && now-c.since < 4*time.Second
}

// leads checks that a client leads in its turn. It has campaigned until now.
func (h *handing) leads(p *promises.Caller) {
	t := h.turn
	h.turn = nil
	if t != nil && h.waits(t, p.Scene.World.Now, 0) && p.Scene.AllWell() {
		p.Check(tally.ChosenLeads, t.client == p.Client, "%s leads, and %s was chosen to", p.Name(), t.client.Host.Name)
	}
}

// transfer has a leader choose who leads next. The checks rely on its lease until Transfer has
// returned: it must have ended before another client leads.
func (h *handing) transfer(p *promises.Caller, dice *world.Dice, e *redlock.Election, lease *redlock.Lease) {
	to := p.Scene.Clients[dice.Below(len(p.Scene.Clients))]
	if dice.Chance(700) {
		for range p.Scene.Clients { // look for one who campaigns
			if h.queue[to.Index] != nil {
				break
			}
			to = p.Scene.Clients[(to.Index+1)%len(p.Scene.Clients)]
		}
	}
	now := func() time.Duration { return p.Scene.World.Now }
	chosen, trips := h.queue[to.Index], p.Scene.Check.Trips()
	well := p.Scene.AllWell() && h.waits(chosen, now(), trips) && lease.Valid()
	h.turn = nil
	if well {
		h.turn = chosen // it may lead before Transfer has returned
	}
	err := e.Transfer(context.Background(), lease, to.Me().ID())
	well = well && p.Scene.AllWell()
	switch {
	case err == nil:
		p.Check(tally.TransferEnds, !lease.Valid(), "%s has transferred its lease, which is still valid", p.Name())
		return
	case errors.Is(err, redlock.ErrNotQueued):
		p.Check(tally.TransferEnds, !errors.Is(lease.Err(), redlock.ErrUnlocked), "%s was told %v, and its lease has been unlocked", p.Name(), err)
		if well && h.waits(chosen, now(), trips) {
			p.Check(tally.ChosenLeads, false, "%s campaigns, and %s was told: %v", to.Host.Name, p.Name(), err)
		}
	}
	h.turn = nil
}

// ask asks the leader to resign.
func (h *handing) ask(p *promises.Caller, c *redlock.Client) {
	w := &wish{reason: strconv.Itoa(len(h.sent)), began: p.Scene.World.Now, until: -1}
	h.sent[w.reason] = w
	cl, before := p.Scene.Check.Leads()
	ends := time.Duration(-1)
	if cl != nil {
		ends = p.Scene.World.Now + cl.Hold.Until().Sub(cl.Client.Host.Clock.Now())
	}
	err := p.Scene.Ask(p, "RequestRelease", 3*p.Scene.Config.NodeTimeout, func() error {
		return c.RequestRelease(context.Background(), "boss", w.reason)
	})
	w.over, w.made, w.lapses = p.Scene.World.Now, err == nil, p.Scene.Lapses()
	w.stored = p.Scene.Check.StoredAnywhere("boss")
	if after, value := p.Scene.Check.Leads(); after != nil && after == cl && value == before && w.made {
		w.to, w.until, h.wish = value, ends, w
	}
}

// listener is a leader that may be asked to resign.
type listener struct {
	h      *handing
	ch     <-chan redlock.Request // nil: it does not listen
	lease  *redlock.Lease
	since  time.Duration // when it led
	listen time.Duration // when it began to listen
	last   int           // the number of the last request that reached it
}

func (h *handing) listens(p *promises.Caller, dice *world.Dice, lease *redlock.Lease) *listener {
	l := &listener{h: h, lease: lease, since: p.Scene.World.Now, last: -1}
	if h.on && dice.Chance(600) {
		p.Client.Listens[lease.Value()] = true
		l.ch, l.listen = lease.Requested(), p.Scene.World.Now
	}
	return l
}

// asked reports whether a request has come, and checks that it is for this holder, and that none
// is missing which must have come.
func (l *listener) asked(p *promises.Caller) bool {
	now, came := p.Scene.World.Now, false
	select {
	case r := <-l.ch:
		came = true
		l.last, _ = strconv.Atoi(r.Reason)
		w := l.h.sent[r.Reason]
		theirs := w == nil || w.over > 0 && l.since > w.over && !w.stored[l.lease.Value()] && w.lapses == p.Scene.Lapses()
		p.Check(tally.RequestForHolder, !theirs, "%s got request %q, which was for an earlier leader", p.Name(), r.Reason)
	default:
	}
	w := l.h.wish
	if l.ch == nil || w == nil || w.to != l.lease.Value() || w.lapses != p.Scene.Lapses() || !l.lease.Valid() || !p.Client.ReachesQuorum() || p.Client.Preemption.Every > 0 {
		return came
	}
	since := max(w.over, p.Scene.World.Rough, p.Host.Resumed, l.listen)
	due := since + p.Scene.Config.TTL/3 + p.Scene.Check.Back()
	if number, _ := strconv.Atoi(w.reason); now > due && due < w.until && p.Host.Clock.Uneven == 0 {
		last := l.h.sent[strconv.Itoa(l.last)]
		late := last != nil && (last.over == 0 || last.over > w.began) // another call, which masters may have heard later
		p.Check(tally.RequestReaches, l.last >= number || late, "request %q was made %v ago, and has not reached %s", w.reason, now-w.over, p.Name())
		l.h.wish = nil
	}
	return came
}
