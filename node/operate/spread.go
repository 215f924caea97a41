package operate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node"
)

// Spread spreads names over these groups, which are among those of the given masters. Masters of all
// groups that have names now must be given, too. Names that move to another group are in no group for
// the longest restart guard of any client: so long Spread waits before it has their new groups take
// them. All other names stay where they are, undisturbed.
//
// Every new owner takes over the data that outlives locks (S51).
func Spread(ctx context.Context, masters map[string][]string, over []string, c node.Config) ([]string, error) {
	c, err := c.Checked()
	if err != nil {
		return nil, err
	}
	f := fleet{masters: masters, config: c}
	if err := f.check(over); err != nil {
		return nil, err
	}
	moving, err := f.begin(ctx, over)
	if err != nil || moving.Settled() {
		return f.results, err
	}
	for rest := f.guard(); rest > 0; {
		f.config.Logger.Info(NamesMove, "for", rest)
		if err := wait(ctx, f.config, rest); err != nil {
			return nil, movingErr(err)
		}
		if rest, err = f.end(ctx, moving); err != nil {
			return nil, movingErr(err)
		}
	}
	return f.results, nil
}

// movingErr says that no group has the names that move until somebody ends the move.
func movingErr(err error) error {
	return fmt.Errorf("names are moving: call it again with the same groups: %w", err)
}

// NamesMove is what Spread logs before it waits, with how long.
const NamesMove = "redlock: no group has the names that move"

// fleet is the masters of several groups.
type fleet struct {
	masters map[string][]string // addresses, by group
	config  node.Config

	sites   map[string]sites
	hold    time.Duration        // the longest restart guard of any client
	began   map[string]time.Time // when all masters had told that names move, by the clock of each
	results []string
}

// heed takes note of the restart guards that a master knows of.
func (f *fleet) heed(s *site) { f.hold = max(f.hold, s.marker.Hold, s.config.Guard.Hold) }

// guard is for how long no group has a name that moves.
func (f *fleet) guard() time.Duration {
	return f.hold + drift.Allowance(f.hold, f.config.Guard.Factor())
}

// rest is how much of the guard is left by the clocks of most masters: our own may be fast.
func (f *fleet) rest() time.Duration {
	var passed []time.Duration
	for _, s := range f.all() {
		passed = append(passed, s.seen.Time.Sub(f.began[s.addr]))
	}
	slices.Sort(passed)
	return max(0, f.guard()-passed[(len(passed)-1)/2])
}

// LeastSpread is how many masters a group needs to have only some names: one alone may forget the map.
const LeastSpread = 3

// check refuses bad arguments.
func (f *fleet) check(over []string) error {
	names := f.groups()
	if f.config.Guard.Hold == 0 {
		return errors.New("Guard.Hold 0s: must be the longest TTL of any client at least, for which no group has a name that moves")
	}
	if len(over) == 0 {
		return errors.New("no groups to spread over: at least 1 is needed")
	}
	if err := errors.Join(spread.Check(names), spread.Check(over)); err != nil {
		return err
	}
	for _, g := range names {
		if n := len(f.masters[g]); n < LeastSpread {
			return fmt.Errorf("group %q: %d masters: at least %d are needed", g, n, LeastSpread)
		}
	}
	return f.has(over)
}

// has refuses groups whose masters were not given.
func (f *fleet) has(groups []string) error {
	for _, g := range groups {
		if len(f.masters[g]) == 0 {
			return fmt.Errorf("group %q: its masters must be given", g)
		}
	}
	return nil
}

// begin has all masters tell that names move, and returns the map by which they do; a settled one if
// the names are spread over these groups already.
func (f *fleet) begin(ctx context.Context, over []string) (spread.Map, error) {
	if err := f.open(ctx); err != nil {
		return spread.Map{}, err
	}
	defer f.close()
	m, err := f.plan(over)
	if err != nil {
		return m, err
	}
	if err = f.tell(m); err == nil {
		err = f.start()
	}
	if err != nil && !m.Settled() {
		err = movingErr(err) // some masters may have told the map
	}
	return m, err
}

// plan returns the map that follows on the one that the masters tell. It looks at them once more, now that
// all are connected: a master that restarts later breaks its connection. So if any map was told by all
// masters, one of them tells it now.
func (f *fleet) plan(over []string) (spread.Map, error) {
	if err := f.each((*site).look); err != nil {
		return spread.Map{}, err
	}
	if err := f.each((*site).mustStore); err != nil {
		return spread.Map{}, err
	}
	m, err := f.all().newestMap()
	if err == nil {
		err = f.has(slices.Concat(m.Groups, m.Next))
	}
	if err != nil {
		return m, err
	}
	if m, err = toward(m, over); err != nil {
		return m, err
	}
	if f.all().contest(m) {
		m.Number++
	}
	return m, nil
}

// toward returns the map by which names move to these groups, or m if they have all names already.
func toward(m spread.Map, over []string) (spread.Map, error) {
	target := slices.Sorted(slices.Values(over))
	switch {
	case m.Settled() && !slices.Equal(m.Groups, target):
		m = m.Toward(target)
	case !m.Settled() && !slices.Equal(m.Next, target):
		return m, fmt.Errorf("names are moving to the groups %s: spread them over these first", strings.Join(m.Next, ", "))
	}
	return m, nil
}

// start reads the clocks by which the guard passes. It begins when the last master has told the map: a
// quorum may be of masters that told it late.
func (f *fleet) start() error {
	f.began = map[string]time.Time{}
	return f.each(func(s *site) error {
		err := s.look()
		f.began[s.addr] = s.seen.Time
		return err
	})
}

// end has the new owners take over what outlives locks, and all masters tell that the names have moved.
// If the guard has not passed yet, end returns the rest, and does nothing. Another operator who moves the
// names to the same groups may have done all that, or some.
//
// Invariant: all masters of all groups have told for the longest restart guard that the names move.
// So no client has, or gets, a lease of such a name, and everything that was confirmed of it in its old
// group is stored at a majority there.
func (f *fleet) end(ctx context.Context, moving spread.Map) (rest time.Duration, _ error) {
	if err := f.open(ctx); err != nil {
		return 0, err
	}
	defer f.close()
	settled := moving.Settle()
	if err := f.each(func(s *site) error {
		if told := s.marker.Group.Map; told != moving.String() && told != settled.String() {
			return errors.New("has lost its map, or has another one")
		}
		return nil
	}); err != nil {
		return 0, err
	}
	if rest := f.rest(); rest > 0 {
		return rest, nil
	}
	if err := f.move(moving); err != nil {
		return 0, err
	}
	return 0, f.tell(settled)
}

// move has the masters of each group learn what the other groups know of the names that it gets.
func (f *fleet) move(moving spread.Map) error {
	for _, from := range f.groups() {
		known := newLasting()
		if err := f.sites[from].each(known.learn); err != nil {
			return err
		}
		for _, to := range f.groups() {
			moves := func(name string) bool {
				owner := spread.Highest(moving.Groups, name) // none, if there was no map: whoever has it
				return to != from && (owner == "" || owner == from) && spread.Highest(moving.Next, name) == to
			}
			if err := f.sites[to].each(known.only(moves, f.config.KeyPrefix).teach); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups returns the names of the groups.
func (f *fleet) groups() []string { return slices.Sorted(maps.Keys(f.masters)) }

func (f *fleet) open(ctx context.Context) error {
	f.sites = map[string]sites{}
	for _, group := range f.groups() {
		s, err := openSites(ctx, f.masters[group], group, f.config)
		if err != nil {
			f.close()
			return fmt.Errorf("group %s: %w", group, err)
		}
		f.sites[group] = s
	}
	if err := errors.Join(f.all().mustDiffer(), f.each((*site).mustBeWhole)); err != nil {
		f.close()
		return err
	}
	return nil
}

// mustBeWhole refuses masters of a group that has other masters, or another name.
func (s *site) mustBeWhole() error {
	return s.group.Differs(s.marker.Group)
}

func (f *fleet) close() {
	f.all().close()
	f.sites = nil
}

func (f *fleet) all() (all sites) {
	for _, group := range f.groups() {
		all = append(all, f.sites[group]...)
	}
	return all
}

func (f *fleet) each(do func(*site) error) error { return f.all().each(do) }

// newestMap is the newest map that a master tells.
func (s sites) newestMap() (newest spread.Map, err error) {
	err = s.each(func(each *site) error {
		m, err := spread.Parse(each.marker.Group.Map)
		if m.Newer(newest) {
			newest = m
		}
		return err
	})
	return newest, err
}

// contest reports whether a master tells another map of that number.
func (s sites) contest(m spread.Map) bool {
	return slices.ContainsFunc(s, func(each *site) bool {
		told, _ := spread.Parse(each.marker.Group.Map)
		return told.Number == m.Number && told.String() != m.String()
	})
}

// tell has every master tell the map.
//
// Invariant: it replaces only maps with a lower number. So of two operators at a time one fails: each map
// is told by all masters of all groups before the next one, and the two meet at some master. A master that
// has forgotten its map since it was looked at may have told a newer one, so it is told none.
func (f *fleet) tell(m spread.Map) error {
	f.results = nil
	return f.each(func(s *site) error {
		had, _ := spread.Parse(s.marker.Group.Map)
		for range maxMarks {
			told, err := spread.Parse(s.marker.Group.Map)
			if err == nil && told.Number < had.Number {
				err = errors.New("has lost its map: call it again with the same groups")
			}
			if err == nil && told.Number >= m.Number && told.String() != m.String() {
				err = fmt.Errorf("has the map %s: another change is under way, or was", told)
			}
			if err == nil {
				err = s.mark(s.marker.Spread(s.host.RunID, s.group, m.String()))
			}
			if err != nil {
				return err
			}
			f.heed(s)
			if s.marker.Group.Map == m.String() {
				f.results = append(f.results, fmt.Sprintf("%s: of group %s, has the map %s", s.addr, s.group.Name, m))
				return nil
			}
		}
		return errors.New("clients keep changing its marker")
	})
}

// only returns what is known of some names.
func (l *lasting) only(these func(name string) bool, prefix string) *lasting {
	some := newLasting()
	pick := func(key string) bool { return these(nameIn(key, prefix)) }
	for key, n := range l.counters {
		if pick(key) {
			some.counters[key] = n
		}
	}
	for key, n := range l.sizes {
		if pick(key) {
			some.sizes[key] = n
		}
	}
	for key, ids := range l.arrivals {
		if pick(key) {
			some.arrivals[key] = ids
		}
	}
	return some
}

// nameIn returns the name of the lock that a lasting key is of.
func nameIn(key, prefix string) string {
	word, name, _ := strings.Cut(strings.TrimPrefix(key, prefix+reservedKeys), ":")
	if word == "latch" {
		_, name, _ = strings.Cut(name, ":") // behind the generation
	}
	return name
}

// wait waits for d.
func wait(ctx context.Context, c node.Config, d time.Duration) error {
	t := c.Clock.Timer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
