package guard

import "time"

// estimate bounds how far a master's clock is ahead of ours: at least low and at most high.
// It follows from the other masters' clocks and from the offsets that clients have written.
type estimate struct {
	span
	offsets int  // how many masters say so
	sure    span // the same, by those of them alone that were read in time
	unread  bool // none does, but something is written: who wrote it may hold a lock (S63)
	enough  bool // a quorum of masters was read just now
}

// span is a range of values.
type span struct {
	low, high time.Duration
	known     bool
}

// add widens the span by another one.
func (s *span) add(low, high time.Duration) {
	if !s.known {
		*s = span{low, high, true}
	}
	s.low, s.high = min(s.low, low), max(s.high, high)
}

// hides reports whether the clock seems to be where it must be only because some of the others were read late:
// those that were not say that it was set, or there are none. The others are read again soon: only masters that
// are far away stay vague for as long as two looks (S86).
func (w estimate) hides(t *timepiece, now time.Duration) bool {
	if now-t.since >= 2*HeardWithin || t.against(now, w.low, w.high) != 0 {
		return false
	}
	if !w.sure.known {
		return t.ceiling-t.floor <= sharp && w.high-w.low > 4*sharp
	}
	return t.against(now, w.sure.low, w.sure.high) != 0
}

// estimate computes the bounds from the other masters. One of all clocks may be wrong: if
// it is this one, no right clock confirms its position. So the bounds are the widest: the
// clock is in doubt only if every other master contradicts it.
func (g *Group) estimate(s *standing, t *timepiece, now time.Duration) (w estimate) {
	if g == nil {
		return estimate{enough: true}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	read := 1
	for _, m := range g.members {
		if m == s || !m.clock.known || now-m.clock.seen > HeardWithin {
			continue
		}
		read++
		o, known := t.said.offsets.of(g.names(m))
		if !known || !m.clock.fit(now) {
			continue
		}
		o = o.aged(t.saidAt.Add(now-t.heard), &m.clock)
		within := m.clock.drift(now - m.clock.at)
		low, high := m.clock.floor-within+o.low, m.clock.ceiling+within+o.high
		w.offsets++
		w.add(low, high)
		if m.clock.ceiling-m.clock.floor <= sharp {
			w.sure.add(low, high)
		}
	}
	w.enough = read >= g.need()
	w.unread = w.offsets == 0 && len(t.said.offsets) > 0
	return w
}
