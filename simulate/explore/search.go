package explore

import (
	"math/bits"
	"slices"

	"github.com/quorumlock/quorumlock/simulate"
)

// This file searches all orders of events of a small world: stateless model checking
// with dynamic partial-order reduction (source sets and sleep sets: Abdulla, Aronis,
// Jonsson, Sagonas, 2014). It replays a run from the start with another choice at
// one place. The runs so far tell which places and choices are worth it: two steps
// that can be exchanged without anybody noticing are tried in one order only.

// search is the state of an exploration.
type search struct {
	world   *World
	frames  []*frame
	steps   []step // of the last run
	before  []set  // for each step, the steps that it depends on, directly or not
	causes  []set  // the same, and all votes of which a decision was made
	bound   int    // how often a run may leave its usual course; negative: without limit
	stats   Stats
	strands []*strand
}

// frame is one place in a run at which a strand was chosen.
type frame struct {
	chosen  strandName
	usual   strandName // the choice if nothing speaks for another
	enabled []strandName
	todo    []strandName // other choices that must be tried
	done    []slept      // choices that were tried
	sleep   []slept      // choices that need not be tried here, because they were before
	strayed int          // how often the run left its usual course until here
}

// slept is a choice that was tried, and what its step touched.
type slept struct {
	strand strandName
	touch  touch
}

// set is a set of the steps of a run.
type set [maxSteps / 64]uint64

// maxSteps is how many steps a run may have.
const maxSteps = 512

func (s *set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *set) join(o *set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// next runs the next order. It reports false when no order is left.
func (s *search) next() (*simulate.Violation, bool) {
	if s.stats.Runs > 0 && !s.advance() {
		return nil, false
	}
	fresh := max(0, len(s.frames)-1)
	check := s.run()
	s.races(fresh)
	if check.found == nil {
		check.judge(s.causes)
	}
	return check.found, true
}

// run replays the frames, and then follows the usual course to the end.
func (s *search) run() *watcher {
	x := newMiniature(s.world)
	defer x.end()
	x.steps = s.steps[:0]
	x.begin()
	s.stats.Runs++
	for d := 0; x.check.found == nil; {
		s.strands = x.enabled(s.strands)
		if !x.settled && (len(s.strands) == 0 || s.strands[0].lazy) {
			x.settled = true
			x.check.rest()
			continue
		}
		if len(s.strands) == 0 {
			break
		}
		if d == maxSteps {
			s.stats.Endless++
			break
		}
		if d == len(s.frames) && !s.extend() {
			s.stats.Pruned++
			break
		}
		x.do(s.pick(s.frames[d].chosen))
		s.keepTouch(d, x.steps[d].touch)
		d++
	}
	s.steps = x.steps
	s.stats.Steps += len(s.steps)
	s.stats.Depth = max(s.stats.Depth, len(s.steps))
	return &x.check
}

func (s *search) pick(name strandName) *strand {
	for _, st := range s.strands {
		if st.name == name {
			return st
		}
	}
	panic("simulate: the replay of a small world differs from its first run: " + name.String() + " is not possible now")
}

// extend adds a frame for the place that the run has come to. It reports false if
// everything that can be next was tried before in another order.
func (s *search) extend() bool {
	f := &frame{usual: s.strands[0].name}
	for _, st := range s.strands {
		f.enabled = append(f.enabled, st.name)
	}
	if n := len(s.frames); n > 0 {
		up := s.frames[n-1]
		f.strayed = up.strayed
		did := s.touchOf(up)
		for _, q := range slices.Concat(up.sleep, up.done) {
			if q.strand != up.chosen && !q.touch.dependent(did) {
				f.sleep = append(f.sleep, q)
			}
		}
	}
	for _, name := range f.enabled {
		if !f.sleeps(name) {
			f.chosen = name
			s.frames = append(s.frames, f)
			return true
		}
	}
	return false
}

func (s *search) touchOf(f *frame) *touch {
	return &f.done[len(f.done)-1].touch
}

func (f *frame) sleeps(name strandName) bool {
	return slices.ContainsFunc(f.sleep, func(q slept) bool { return q.strand == name })
}

// keepTouch notes what the step at a frame touched, once for each choice.
func (s *search) keepTouch(d int, t touch) {
	f := s.frames[d]
	if n := len(f.done); n == 0 || f.done[n-1].strand != f.chosen {
		f.done = append(f.done, slept{f.chosen, t})
	}
}

// advance goes back to the last frame that has an untried choice. It reports false if no frame
// has one.
func (s *search) advance() bool {
	for n := len(s.frames); n > 0; n-- {
		f := s.frames[n-1]
		for len(f.todo) > 0 {
			name := f.todo[0]
			f.todo = f.todo[1:]
			if f.sleeps(name) || f.tried(name) {
				continue
			}
			up := 0
			if n > 1 {
				up = s.frames[n-2].strayed
			}
			if name != f.usual {
				up++
			}
			if s.bound >= 0 && up > s.bound {
				s.stats.Bounded++
				continue
			}
			f.chosen, f.strayed = name, up
			s.frames = s.frames[:n]
			return true
		}
	}
	return false
}

func (f *frame) tried(name strandName) bool {
	return slices.ContainsFunc(f.done, func(q slept) bool { return q.strand == name })
}

// races finds the steps, from number fresh on, that could have come before an earlier step on
// which they depend, and plans to try those orders.
func (s *search) races(fresh int) {
	for len(s.before) < len(s.steps) {
		s.before = append(s.before, set{})
		s.causes = append(s.causes, set{})
	}
	for i := fresh; i < len(s.steps); i++ {
		it := &s.steps[i]
		var caused, direct set
		for _, c := range it.causes {
			caused.add(c)
			caused.join(&s.before[c])
		}
		// Go from the latest step to the earliest. A step does not race with this one if it must come
		// before another step that must come before this one.
		known := caused
		for j := i - 1; j >= 0; j-- {
			if known.has(j) {
				continue
			}
			at := &s.steps[j]
			if at.strand == it.strand {
				known.add(j)
				known.join(&s.before[j])
				continue
			}
			if at.touch.dependent(&it.touch) {
				direct.add(j)
				known.add(j)
				known.join(&s.before[j])
			}
		}
		s.before[i] = known
		s.causes[i] = s.because(i)
		for w, word := range direct {
			for ; word != 0; word &= word - 1 {
				s.reverse(w*64+bits.TrailingZeros64(word), i)
			}
		}
	}
}

// because returns the steps that led to step i. Votes on one question may be
// exchanged, and yet all of them led to the decision.
func (s *search) because(i int) set {
	it := &s.steps[i]
	var known set
	for _, c := range it.causes {
		known.add(c)
		known.join(&s.causes[c])
	}
	for j := i - 1; j >= 0; j-- {
		at := &s.steps[j]
		if !known.has(j) && (at.strand == it.strand || at.touch.dependent(&it.touch) || at.touch.fellow(&it.touch)) {
			known.add(j)
			known.join(&s.causes[j])
		}
	}
	return known
}

// reverse plans to try an order in which step i comes before step j.
func (s *search) reverse(j, i int) {
	f := s.frames[j]
	// rest holds the steps after j that do not depend on j, and then step i. At j, the search must
	// try one of the steps that can come first in rest.
	var rest []int
	for k := j + 1; k < i; k++ {
		if !s.before[k].has(j) {
			rest = append(rest, k)
		}
	}
	rest = append(rest, i)
	var first strandName
	seen := make([]strandName, 0, 8)
	for n, k := range rest {
		name := s.steps[k].strand
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		if s.follows(k, rest[:n]) {
			continue
		}
		if f.tried(name) || f.sleeps(name) || slices.Contains(f.todo, name) {
			return
		}
		if first == (strandName{}) && slices.Contains(f.enabled, name) {
			first = name
		}
	}
	if first != (strandName{}) {
		f.todo = append(f.todo, first)
		return
	}
	for _, name := range f.enabled {
		if !f.tried(name) && !slices.Contains(f.todo, name) {
			f.todo = append(f.todo, name)
		}
	}
}

// follows reports whether step k depends on one of the steps before it.
func (s *search) follows(k int, earlier []int) bool {
	for _, e := range earlier {
		if s.before[k].has(e) {
			return true
		}
	}
	return false
}
