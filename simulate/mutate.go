package simulate

import (
	"cmp"
	"slices"
	"time"
)

// mutant returns a schedule that differs from s in a few places, and keeps to the
// assumptions that s keeps to. It may take faults and actions from other.
func (s *Schedule) mutant(dice *stream, other *Schedule) *Schedule {
	m := &mutation{s.clone(), other, dice}
	for range 1 << dice.below(4) {
		m.once()
	}
	return m.done()
}

// mostFaults is how many faults a mutant may have: as many as the richest schedule that
// is drawn. Without a bound they would pile up from parent to child, until nobody gets a
// lock any more.
const mostFaults = 60

// done drops faults beyond mostFaults, sorts the rest by time, and makes them lawful.
func (m *mutation) done() *Schedule {
	for len(m.Faults) > mostFaults {
		i := m.dice.below(len(m.Faults))
		m.Faults = slices.Delete(m.Faults, i, i+1)
	}
	slices.SortStableFunc(m.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	m.lawful()
	return m.Schedule
}

// mutation is a schedule that is being changed.
type mutation struct {
	*Schedule
	other *Schedule
	dice  *stream
}

// once makes one change.
func (m *mutation) once() {
	switch dice := m.dice; dice.below(10) {
	case 0, 1, 2:
		m.changeFault()
	case 3:
		m.repeatFault()
	case 4:
		m.addFault()
	case 5:
		m.spliceFaults(dice.between(0, m.config.Duration))
	case 6, 7:
		m.changeAction()
	case 8:
		m.spliceActions()
	default: // other dice for the network and the clients
		m.Dice = dice.bits() >> 1
	}
}

// anyFault returns one of the faults, or nil.
func (m *mutation) anyFault() *Fault {
	if len(m.Faults) == 0 {
		return nil
	}
	return &m.Faults[m.dice.below(len(m.Faults))]
}

// changeFault changes the time, the length, the size or the hosts of a fault, or removes
// it.
func (m *mutation) changeFault() {
	f, dice, cfg := m.anyFault(), m.dice, m.config
	if f == nil {
		m.addFault()
		return
	}
	switch dice.below(6) {
	case 0: // a little, so that it comes before or after something else
		f.At = m.moved(f.At, cfg.TTL)
	case 1:
		f.At = m.moved(f.At, cfg.Duration)
	case 2:
		f.For = m.scaled(f.For, 10*cfg.TTL)
	case 3:
		f.Size = m.scaled(f.Size, 10*cfg.TTL)
	case 4: // elsewhere
		f.Node, f.Client = turned(f.Node, cfg.Nodes, dice), turned(f.Client, cfg.Clients, dice)
	default:
		i := slices.Index(m.Faults, *f)
		m.Faults = slices.Delete(m.Faults, i, i+1)
	}
}

// turned draws one of n hosts. A negative i means all of them, and stays.
func turned(i, n int, dice *stream) int {
	if i < 0 {
		return i
	}
	return dice.below(n)
}

// moved returns an instant that is no further than by from at.
func (m *mutation) moved(at, by time.Duration) time.Duration {
	return min(max(0, at+m.dice.between(-by, by)), m.config.Duration)
}

// scaled returns a duration between a quarter of d and four times d, and no more than
// most.
func (m *mutation) scaled(d, most time.Duration) time.Duration {
	d = time.Duration(float64(d) * float64(m.dice.between(250, 1000)) / 1000)
	if m.dice.chance(500) {
		d *= 4
	}
	return min(max(d, -most), most)
}

// repeatFault lets a fault happen a second time, mostly close to the first.
func (m *mutation) repeatFault() {
	if f := m.anyFault(); f != nil {
		again, by := *f, 4*m.config.TTL
		if m.dice.chance(300) {
			by = m.config.Duration
		}
		again.At = m.moved(f.At, by)
		m.Faults = append(m.Faults, again)
	}
}

// addFault adds a fault of any kind that the run has.
func (m *mutation) addFault() {
	if kinds := m.config.Faults.Kinds; len(kinds) > 0 {
		at := m.dice.between(0, m.config.Duration)
		m.Faults = append(m.Faults, m.config.Faults.one(pick(m.dice, kinds...), at, m.dice, m.config))
	}
}

// spliceFaults replaces the faults from an instant on with those of the other schedule.
func (m *mutation) spliceFaults(from time.Duration) {
	m.Faults = slices.DeleteFunc(m.Faults, func(f Fault) bool { return f.At >= from })
	m.addTheirs(from)
}

// addTheirs adds the faults of the other schedule from an instant on. Their times keep
// their proportion to the TTL.
func (m *mutation) addTheirs(from time.Duration) {
	cfg, theirs := m.config, m.other.config
	scale := func(d time.Duration) time.Duration {
		return time.Duration(float64(d) * float64(cfg.TTL) / float64(theirs.TTL))
	}
	for _, f := range m.other.Faults {
		f.At, f.For, f.Size = scale(f.At), scale(f.For), scale(f.Size)
		if f.At < from || f.At > cfg.Duration {
			continue
		}
		f.Node, f.Client = min(f.Node, f.Node%cfg.Nodes), min(f.Client, f.Client%cfg.Clients)
		m.Faults = append(m.Faults, f)
	}
}

// changeAction changes one action of a caller, repeats it or removes it.
func (m *mutation) changeAction() {
	var busy []int
	for i, list := range m.Actions {
		if len(list) > 0 {
			busy = append(busy, i)
		}
	}
	if len(busy) == 0 {
		return
	}
	dice, cfg := m.dice, m.config
	i := pick(dice, busy...)
	j := dice.below(len(m.Actions[i]))
	a := &m.Actions[i][j]
	switch dice.below(8) {
	case 0:
		a.Think, a.At = m.scaled(a.Think, cfg.Duration), m.scaled(a.At, cfg.Duration)
	case 1:
		a.Patience = max(m.scaled(a.Patience, 30*cfg.TTL), cfg.TTL/4)
	case 2:
		a.Hold = m.scaled(max(a.Hold, cfg.TTL/20), 8*cfg.TTL)
	case 3:
		a.Renew = !a.Renew
	case 4:
		a.Extend = !a.Extend
	case 5:
		a.How = pick(dice, ByLock, ByTryLock)
	case 6:
		m.Actions[i] = slices.Insert(m.Actions[i], j, *a)
	default:
		m.Actions[i] = slices.Delete(m.Actions[i], j, j+1)
	}
}

// spliceActions gives a caller the actions of a caller of the other schedule, if the two
// have the same locks and TTL. Otherwise it changes an action.
func (m *mutation) spliceActions() {
	theirs := m.other.config
	if len(m.Actions) == 0 || len(m.other.Actions) == 0 || theirs.Lock != m.config.Lock || theirs.locks > m.config.locks || theirs.TTL != m.config.TTL {
		m.changeAction()
		return
	}
	list := slices.Clone(pick(m.dice, m.other.Actions...))
	m.Actions[m.dice.below(len(m.Actions))] = list
}

// lawful brings the faults back within the assumptions, as Mix.draw does.
func (m *mutation) lawful() {
	cfg := m.config
	if !cfg.Faults.Strict {
		return
	}
	cfg.Faults.oneLie(m.Faults)
	isForward := func(f Fault) bool { return f.Kind == Step && f.Size > 0 }
	switch {
	case !slices.ContainsFunc(m.Faults, isForward):
	case cfg.watchesClocks() && cfg.Nodes > 2:
		m.Faults = forward(m.Faults, m.dice, cfg)
	default:
		for i := range m.Faults {
			if f := &m.Faults[i]; f.Kind == Step {
				f.Size = min(f.Size, -f.Size)
			}
		}
	}
}
