package guard

import (
	"fmt"
	"slices"
	"time"
)

// This file is the clock guard; docs/guarantees.md (One wrong clock) gives its purpose. A
// master whose clock was certainly set forward may not grant until every lease from before has
// ended. A master whose clock was set back, or runs slowly, only keeps keys for longer; but the
// clock may come forward again before the other clients have seen that it went back. So its
// votes do not count for three seconds (S59).

// steps is what a reading of a master's clock has shown.
type steps struct {
	forward time.Duration // how far it has certainly been set forward; zero: within the tolerance
	still   bool          // it stands still
	kept    bool          // we had read it before, so that a step since then would show
	slow    bool          // our own clock is slower than it seemed
}

// reason is why the master may not vote, or empty.
func (s steps) reason() string {
	switch {
	case s.forward > 0:
		return fmt.Sprintf("its clock is %v ahead of ours", s.forward)
	case s.still:
		return "its clock stands still"
	}
	return ""
}

// watchClock compares how far the master's clock and our steady clock moved since the
// previous look. So a step of our own wall clock does not count as a step of the master's.
// If our monotonic clock stood still in a suspend, every master seems to have stepped; that
// cannot be distinguished from a step of all the masters' clocks, and is treated alike (S28).
func (g *Guard) watchClock(e Evidence, now time.Duration) steps {
	if g.config.ClockTolerance <= 0 || e.Time.IsZero() {
		return steps{}
	}
	r, t := g.reading(e), &g.time
	doubt := t.doubt
	s := steps{still: t.still(r), kept: t.known}
	said := parseHistory(e.Offsets)
	said.hidden = e.Secret
	placed := t.placed
	if g.untimely.taken() {
		s.forward, g.untimely = t.read(g.untimely), reading{}
	}
	s.forward = max(s.forward, t.look(r, said))
	if !t.placed.Equal(placed) && g.group != nil {
		g.group.comers.Add(1)
	}
	// Only what two looks in a row say counts: in a suspend our clock stands still, so that by
	// the first look after it every master's clock seems to have run faster.
	before, atLeast := t.atLeast, max(t.paces[0].read(r), t.paces[1].read(r))
	t.atLeast = atLeast
	s.slow = g.group.read(g.standing, t.bounds, min(before, atLeast))
	if t.doubt != doubt && g.unfinished() {
		g.born = now // our own clock may run fast, and would end the quarantine too early (S77)
	}
	if s.forward > 0 {
		// The clock was set, or ours stood still in a suspend. Neither says how fast the clock
		// runs from now on.
		for i := range t.paces {
			t.paces[i].older, t.paces[i].newer = r, r
		}
	}
	g.measure(r)
	return s
}

// names are by what the other masters' clocks tell of a master: its run, and its memory, which a durable
// master keeps when it restarts (S78), and which one has that hides its run_id (L60). They are no other
// connected master's. The mutex is held.
func (g *Group) names(of *standing) (names []string) {
	shared := func(name string) bool {
		return slices.ContainsFunc(g.members, func(m *standing) bool { return m != of && m.joined && (m.run == name || m.memory == name) })
	}
	for _, name := range []string{of.run, of.memory} {
		if name != "" && !shared(name) {
			names = append(names, name)
		}
	}
	return names
}

// measure compares our own clock with the master's as long as all masters leave open whether it is
// slow.
func (g *Guard) measure(r reading) {
	if !g.watches() || g.group.measured() {
		return
	}
	g.time.limit.read(r)
	g.group.measure(g.time.limit.atMost, 1+g.config.DriftFactor)
}

// several reports whether there are other masters to compare a clock with. One alone is
// right.
func (g *Group) several() bool { return g != nil && g.id.Size > 1 }

// ahead returns for how long the master's votes must not count yet because its clock was
// certainly set forward.
func (g *Guard) ahead(now time.Duration) time.Duration {
	if !g.watches() {
		return 0
	}
	return max(0, g.time.out-now)
}

// settles returns for how long the master's votes must not count yet because its clock was
// certainly set back. If the clocks of most masters seem set back, our own clock was set
// or runs fast instead, and no master is kept out (L37).
func (g *Guard) settles(now time.Duration) time.Duration {
	if !g.watches() || g.time.doubt <= now || g.group.mostWentBack(now) {
		return 0
	}
	return g.time.doubt - now
}

// mostWentBack reports whether the clocks of most masters were set back just now. A guard
// without a group has one master.
func (g *Group) mostWentBack(now time.Duration) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	back := 0
	for _, m := range g.members {
		if m.clock.doubt > now {
			back++
		}
	}
	return back >= g.need()
}

// need is how many masters are a quorum. The mutex is held.
func (g *Group) need() int { return max(g.id.Size, len(g.members))/2 + 1 }

// compareClock compares the master's clock with the other masters' until it is familiar.
// Readings get better, so one comparison is not enough. It reports false as long as the master
// must not vote because it is not known which clocks are right: too few masters were read, or a
// single one can be compared with and contradicts.
//
// What other clients have written counts first: each other master's clock, and how far this
// one was ahead of it, say where this one must be (S58). Without that, a clock that is new
// to us is only compared with those of the others as they are now.
func (g *Guard) compareClock(now time.Duration) bool {
	t := &g.time
	if !t.known || t.state == familiar {
		return true
	}
	w := g.group.estimate(g.standing, t, now)
	switch {
	case w.unread:
		return false
	case w.offsets == 0 && t.state != away:
		return g.compareNow(now)
	case !w.enough:
		return false
	case w.offsets == 0:
		return true // nothing is written, and it is where our own readings from before have it
	}
	if w.hides(t, now) {
		return false
	}
	if w.offsets == 1 {
		return t.against(now, w.low, w.high) == 0 // else either of the two clocks may have been set
	}
	switch moved := t.recall(now, w.low, w.high); {
	case moved > 0:
		g.tell = !t.said.before(g.marker)
		g.lose(now, 0, fmt.Sprintf("its clock is %v ahead of what other clients have written of it", moved))
	case moved < 0:
		g.group.wentBack(g.standing, t.doubt)
	}
	return true
}

// unread returns for how long nothing confirms the clock: what clients have written of it is of masters
// that do not answer, or have lost their memory, and so the clock may have been set while a lease lasts (L59).
func (g *Guard) unread(now time.Duration) time.Duration {
	t := &g.time
	if !g.watches() || !t.known || t.state == familiar || !g.group.estimate(g.standing, t, now).unread {
		return 0
	}
	return max(0, t.since+t.unfamiliar()-now)
}

// compareNow compares a clock that is new to us with the current clocks of the others. A
// clock that is ahead counts as just set. A quorum of masters that agree knows the time
// better than our own wall clock; only if they do not agree, ours decides, once.
func (g *Guard) compareNow(now time.Duration) bool {
	t := &g.time
	off, said := g.group.aheadOfMost(g.standing, now)
	whose := "those of most masters"
	switch {
	case said == unheard:
		return t.state == guest
	case said == divided && t.state == guest:
		return true
	case said == divided:
		off = t.floor - time.Duration(g.clock.clock.Now().UnixNano()) + now
		whose = "ours"
	}
	t.state = guest
	if off > agreement && !g.group.mostWentBack(now) { // else it was just not read since (L37)
		g.lose(now, now-t.since, fmt.Sprintf("its clock is %v ahead of %s", off, whose))
	}
	return true
}

// mustTell reports whether the master is to be marked anew because its clock was set forward:
// keys have ended early, as after a loss of its memory, and a later client cannot see that when
// the clock has come back (S72). If another client has marked it since, we do not: that would
// begin the quarantine anew for all clients (L58). The wrong clock may also be our own. So the
// clocks of other masters must agree with ours from before the step until now.
//
// If it is written that the step is no news, we never tell: later the bounds are too wide to show
// that (L93).
func (g *Guard) mustTell(now time.Duration) bool {
	t := &g.time
	if !g.tell || now >= t.found+g.hold() || g.group.AtLeast() > 1+g.config.DriftFactor || !g.group.agree(g.standing, &t.bounds, now, min(2*HeardWithin, g.hold()/2)) {
		return false
	}
	g.tell = !g.written(now)
	return g.tell
}

// written reports whether it was written that the master's clock is where we find it, and ahead of
// where we had known it. So nothing happened that the others do not know. Either we were away, and they
// have waited. Or our own clock stood still in a suspend, and we could not look at this master soon after
// it, as at the others. What is written is how far the masters' clocks differ, whatever ours says (L71).
func (g *Guard) written(now time.Duration) bool {
	t := &g.time
	w := g.group.estimate(g.standing, t, now)
	return w.offsets > 0 && w.low > t.was+t.drift(now-t.found) && t.against(now, w.low, w.high) <= 0
}

// agree reports whether the clocks of as many other masters as make a quorum with the given one are right,
// and stayed where they were when it was found to be set.
func (g *Group) agree(s *standing, step *bounds, now, patience time.Duration) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	right := 1
	for _, m := range g.members {
		if m != s && m.clock.fit(now) && m.clock.stayed(step, now, patience) {
			right++
		}
	}
	return right > 1 && right >= g.need()
}

// wentBack notes that a master's clock was set back.
func (g *Group) wentBack(s *standing, doubt time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.clock.doubt = doubt
	g.raiseDoubts()
}

// offsets returns how far the master's clock is ahead of the others', to be written for
// later clients. A clock that was set is left out until every lease from before has ended:
// later clients must find the old offsets. A client whose own clock may be wrong writes
// nothing. A client to which the clock is new writes nothing vague: once something is written,
// later clients compare the clock with that, and no more with the clocks of the other masters.
//
// Invariant: the offsets of a clock that was set are written before its master votes again. So
// the master sits out for HeardWithin longer, in which there is a look that writes them.
// Otherwise a later client finds the old offsets, and the clock may have come back to them, so
// that the keys of the new leases have ended early (S59, S70).
func (g *Guard) offsets(at time.Time, now time.Duration) (write, over string) {
	t := &g.time
	seen := t.out <= now+HeardWithin && t.doubt <= now+HeardWithin
	if !g.watches() || t.said.hidden || at.IsZero() || !seen || g.group.AtLeast() > 1+g.config.DriftFactor ||
		!g.compareClock(now) {
		return "", ""
	}
	merged, news := t.said.with(g.group.offsets(g.standing, t, at, now), g.marker.name(), t)
	if !news {
		return "", ""
	}
	return merged.String(), t.said.stored
}

// BeforeVote returns the text to write before the master is asked for a vote: where its clock is
// now, unless a client has just written that. Clients that come later may find nothing else but a history
// from long ago, which leaves open where the clock is. They would not notice that it was set while our
// lease lasts (S75). The vote does not wait for the answer: another client may have written meanwhile,
// and a client without the right to write votes all the same.
func (g *Guard) BeforeVote() (v Verdict) {
	t, now := &g.time, g.clock.now()
	at := t.saidAt.Add(now - t.heard)
	if t.known && (at.Sub(t.said.newest()).Abs() > HeardWithin || g.Unlisted()) {
		v.Offsets, v.OffsetsOver = g.offsets(at, now)
	}
	return v
}

// Unlisted reports whether the offsets of the clock lack another clock that was read since they were. A
// client may be gone before its next look: if only one other clock is listed, and its master restarts,
// nothing confirms this one to later clients (L59).
func (g *Guard) Unlisted() bool {
	if g.group == nil || !g.watches() || !g.time.known || g.group.comers.Load() == g.listed {
		return false
	}
	comers, lacks := g.group.lacking(g.standing, g.time.said.offsets, g.clock.now())
	if !lacks {
		g.listed = comers
	}
	return lacks
}

// lacking reports whether a master's offsets lack a clock that they can have, and how many clocks had been
// read by then.
func (g *Group) lacking(s *standing, all offsets, now time.Duration) (comers uint32, lacks bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		if m == s || !m.clock.known || now-m.clock.at > HeardWithin || !m.clock.fit(now) {
			continue
		}
		if _, listed := all.of(g.names(m)); !listed {
			lacks = true
		}
	}
	return g.comers.Load(), lacks
}

// offsets returns how far a master's clock, which now reads at, is ahead of the others'.
func (g *Group) offsets(s *standing, t *timepiece, at time.Time, now time.Duration) (all []offset) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		if m == s || now-m.clock.at > HeardWithin || !m.clock.fit(now) {
			continue
		}
		low, high := difference(&t.bounds, &m.clock, now)
		if t.state != familiar && high-low > 2*sharp {
			continue
		}
		for _, name := range g.names(m) {
			if o := (offset{name, at, low, high}); o.writable() {
				all = append(all, o)
			}
		}
	}
	return all
}
