package simulate

import (
	"math"
	"slices"
	"time"
)

// Distil returns at most n of the schedules that a guided run has kept, those of its
// Corpus among them: each adds as many states to those before as any does, and is then
// reduced to what it takes for nine tenths of them. It also returns how many states they
// reach.
func (r *Report) Distil(n int) (few []*Schedule, states int, err error) {
	reached := map[state]struct{}{}
	left := slices.Clone(r.guide.kept)
	for len(few) < n && len(left) > 0 {
		best, wanted := next(left, reached)
		if len(wanted) == 0 {
			break
		}
		s, all, err := distilled(left[best].schedule, wanted)
		if err != nil {
			return nil, 0, err
		}
		for st := range all {
			reached[st] = struct{}{}
		}
		few, left = append(few, s), slices.Delete(left, best, best+1)
	}
	return few, len(reached), nil
}

// next returns which schedule adds most, for what it takes to store, and what it adds.
func next(left []keeper, reached map[state]struct{}) (best int, wanted []state) {
	most := 0.0
	for i, k := range left {
		more := missing(k.reached, reached)
		if worth := float64(len(more)) / math.Sqrt(float64(50+k.schedule.size())); worth > most {
			best, wanted, most = i, more, worth
		}
	}
	return best, wanted
}

// missing returns those of the states that were not reached before.
func missing(states []state, before map[state]struct{}) (more []state) {
	for _, s := range states {
		if _, ok := before[s]; !ok {
			more = append(more, s)
		}
	}
	return more
}

// distilled returns a schedule with less in it that reaches most of the states that are
// wanted, and all that it reaches.
func distilled(s *Schedule, wanted []state) (*Schedule, map[state]struct{}, error) {
	d := &distiller{wanted: wanted}
	s = d.shorter(s)
	s = s.withCallers(minimal(len(s.Actions), func(keep []int) bool { return d.reaches(s.withCallers(keep)) }))
	s = s.withFaults(minimal(len(s.Faults), func(keep []int) bool { return d.reaches(s.withFaults(keep)) }))
	if d.err != nil {
		return nil, nil, d.err
	}
	s, err := s.begun()
	if err != nil {
		return nil, nil, err
	}
	r, err := s.run(options{cover: true})
	if err != nil {
		return nil, nil, err
	}
	return s, r.reached, nil
}

// distiller takes away what a schedule does not need.
type distiller struct {
	wanted []state
	runs   int
	err    error
}

// maxDistilling bounds how often one schedule is run: what is left then is smaller, if
// not minimal.
const maxDistilling = 30

// reaches reports whether a schedule reaches nine tenths of what is wanted.
func (d *distiller) reaches(s *Schedule) bool {
	if d.runs++; d.err != nil || d.runs > maxDistilling {
		return false
	}
	r, err := s.run(options{cover: true})
	if err != nil {
		d.err = err
		return false
	}
	lost := 0
	for _, st := range d.wanted {
		if _, ok := r.reached[st]; !ok {
			lost++
		}
	}
	return lost <= len(d.wanted)/10
}

// shorter ends the schedule as early as it may.
func (d *distiller) shorter(s *Schedule) *Schedule {
	for eighths := 1; eighths < 8; eighths++ {
		own := *s.config
		own.Duration = own.Duration / 8 * time.Duration(eighths)
		c := s.clone()
		c.config = &own
		c.Faults = slices.DeleteFunc(c.Faults, func(f Fault) bool { return f.At >= own.Duration })
		if d.reaches(c) {
			return c
		}
	}
	return s
}

// withFaults returns the schedule with those of its faults alone.
func (s *Schedule) withFaults(keep []int) *Schedule {
	c := s.clone()
	c.Faults = nil
	for _, i := range keep {
		c.Faults = append(c.Faults, s.Faults[i])
	}
	return c
}

// withCallers returns the schedule in which those callers alone do anything.
func (s *Schedule) withCallers(keep []int) *Schedule {
	c := s.clone()
	for i := range c.Actions {
		if !slices.Contains(keep, i) {
			c.Actions[i] = nil
		}
	}
	return c
}

// begun returns the schedule without the actions that nobody comes to.
func (s *Schedule) begun() (*Schedule, error) {
	tr := newTrace()
	if _, err := s.run(options{trace: tr}); err != nil {
		return nil, err
	}
	c := s.clone()
	for i, list := range c.Actions {
		n := 0
		if i < len(tr.began) {
			n = len(tr.began[i])
		}
		c.Actions[i] = list[:n]
	}
	return c, nil
}
