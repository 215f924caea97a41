package operate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Plan is what Spread would do.
type Plan struct {
	Now      spread.Map    // the newest map that a master tells
	Untold   []string      // the masters of its groups that do not tell it
	Next     spread.Map    // the settled map that Spread ends with; Now if no name moves
	Rest     time.Duration // for how long no group has a name that moves; zero: none moves
	InTheWay []error       // why Spread would fail, as far as that shows before
}

// PlanSpread asks what Spread would do with the same arguments, and writes nothing. Masters that cannot be
// asked stand in the way, and the plan is made of what the others tell.
func PlanSpread(ctx context.Context, masters map[string][]string, over []string, c node.Config) (Plan, error) {
	c, err := c.Checked()
	if err != nil {
		return Plan{}, err
	}
	f := fleet{masters: masters, config: c, hold: c.Guard.Hold}
	if err := f.check(over); err != nil {
		return Plan{}, err
	}
	p := Plan{}
	if p.InTheWay, err = f.reach(ctx); err != nil {
		return Plan{}, err
	}
	defer f.close()
	p.object(f.all().mustDiffer(), f.each((*site).mustBeWhole), f.each((*site).mustStore))
	p.Now, err = f.all().newestMap()
	p.object(err, f.has(slices.Concat(p.Now.Groups, p.Now.Next)))
	p.Untold = f.untold(p.Now)
	p.Next = p.Now
	moving, err := toward(p.Now, over)
	if p.object(err); err != nil || moving.Settled() {
		return p, nil
	}
	p.Next = moving.Settle()
	for _, s := range f.all() {
		f.heed(s)
	}
	p.Rest = f.guard()
	p.object(f.each(newLasting().learn)) // what outlives locks must be readable
	return p, nil
}

// untold returns the masters of the map's groups that do not tell it.
func (f *fleet) untold(m spread.Map) (addrs []string) {
	for _, s := range f.all() {
		if s.marker.Group.Map != m.String() && slices.Contains(slices.Concat(m.Groups, m.Next), s.group.Name) {
			addrs = append(addrs, s.addr)
		}
	}
	return addrs
}

// object notes what stands in the way.
func (p *Plan) object(all ...error) {
	for _, err := range all {
		if err != nil {
			p.InTheWay = append(p.InTheWay, err)
		}
	}
}

// reach opens the masters that can be asked, and returns why the others cannot. An err is a bad argument.
func (f *fleet) reach(ctx context.Context) (silent []error, err error) {
	f.sites = map[string]sites{}
	for _, group := range f.groups() {
		s, err := newSites(f.masters[group], group, f.config)
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", group, err)
		}
		f.sites[group] = s
	}
	failed := map[*site]error{}
	var mu sync.Mutex
	var opened sync.WaitGroup
	for _, s := range f.all() {
		opened.Go(func() { // a master that does not answer takes no time from the others
			err := s.open(ctx)
			mu.Lock()
			defer mu.Unlock()
			failed[s] = err
		})
	}
	opened.Wait()
	for _, s := range f.all() {
		if err := failed[s]; err != nil {
			silent = append(silent, &wire.Error{Node: s.addr, Err: err})
		}
	}
	for group, all := range f.sites {
		f.sites[group] = slices.DeleteFunc(all, func(s *site) bool {
			if failed[s] != nil {
				sites{s}.close()
			}
			return failed[s] != nil
		})
	}
	return silent, nil
}
