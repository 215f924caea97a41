package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Regroup makes masters one group, of which some are in use: from three to five, say.
// Every client that knows the old group is shut out immediately and loses its locks in
// time. The masters vote again, for clients of the new group, when the longest restart
// guard of any client has passed.
//
// That is the longest of node.Config.Guard.Hold and the guards that the masters know. It
// makes Regroup safe: a quorum of the old group must be among the masters, so that
// nothing new is granted there, and all of them count as having lost their memory
// after the last of them was marked.
//
// Every master takes over the data that outlives locks (S51): fencing counters, the sizes
// of semaphores, and the arrivals at latches.
func Regroup(ctx context.Context, addrs []string, group string, c node.Config) ([]string, error) {
	s, err := openSites(ctx, addrs, group, c)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.mustOutvoteTheOld(); err != nil {
		return nil, err
	}
	if err := s.mustShutOutTheOld(); err != nil {
		return nil, err
	}
	m, err := s.newestMap()
	if err != nil {
		return nil, err
	}
	for _, each := range s {
		each.spread, each.group.Map = m, m.String()
	}
	// What cannot be read or written is found before any client is shut out.
	if _, err := s.known(); err != nil {
		return nil, err
	}
	if err := s.each((*site).mustStore); err != nil {
		return nil, err
	}
	if err := s.move(); err != nil {
		return nil, err
	}
	return s.results(), nil
}

// move writes the new group into the markers of all masters, and has each master take over
// the lasting data that all of them know together.
//
// Invariant: everything that the old group has confirmed is read, and written to every
// master, before any master votes in the new group. A vote that comes with another marker
// than its client knows does not count. So everything confirmed was stored at a majority of
// the old masters before they were marked, and a quorum of them is read afterwards. When
// all masters have the data they are marked again, and vote a guard later.
func (s sites) move() error {
	s.agreeOnGuard()
	if err := s.each((*site).regroup); err != nil {
		return err
	}
	s.agreeOnGuard() // clients of the old group may have asked for a longer one meanwhile
	all, err := s.known()
	if err != nil {
		return err
	}
	if err := s.each(all.teach); err != nil {
		return err
	}
	return s.each((*site).regroup)
}

// agreeOnGuard has every master wait for the longest guard that any of them knows of: the
// new masters may be a quorum without the old ones (S61).
func (s sites) agreeOnGuard() {
	guard := &s[0].config.Guard // of all sites
	for _, each := range s {
		guard.Hold = max(guard.Hold, each.marker.Hold)
	}
}

// known is what the masters know together.
func (s sites) known() (*lasting, error) {
	all := newLasting()
	return all, s.each(all.learn)
}

func (s *site) regroup() error {
	if old := s.marker.Group; old != s.group {
		s.was = old.Size
	}
	for range maxMarks {
		if err := s.look(); err != nil { // for the time now: it must be after the others were told
			return err
		}
		over := s.marker
		if newest, err := (sites{s}).newestMap(); err != nil || newest.Newer(s.spread) {
			return errors.Join(err, fmt.Errorf("its map of groups is %q, and not %q any more: call it again", newest, s.spread))
		}
		m := over.Regrouped(s.host.RunID, s.seen.Time, s.config.Guard.Hold, s.group).Promoted(s.seen.Promotion)
		if err := s.mark(m); err != nil {
			return err
		}
		if s.marker == m {
			s.result = fmt.Sprintf("%s: may vote in %v", s.addr, m.Hold.Round(time.Second))
			if s.was > 0 {
				s.result += fmt.Sprintf(", was one of %d masters", s.was)
			}
			return nil
		}
	}
	return errors.New("clients keep changing its marker")
}

// mustOutvoteTheOld refuses to regroup unless a quorum of every group that the
// masters belonged to is among them.
//
// Masters that belonged to a group of this very list do not count, since the whole list is
// here: for example, they were left out when the group was made smaller. And a Regroup that
// failed halfway had found the quorum before it marked any master (S51b).
func (s sites) mustOutvoteTheOld() error {
	if slices.ContainsFunc(s, (*site).halfMoved) {
		return nil
	}
	for _, each := range s {
		old, here := each.marker.Group, 0
		for _, other := range s {
			if g := other.marker.Group; g.Size > 0 && g.Set != other.group.Set && old.Differs(g) == nil {
				here++
			}
		}
		if old.Size > 0 && old.Set != each.group.Set && 2*here <= old.Size {
			return fmt.Errorf("%d of these masters belong to a group of %d: a quorum of it must be among them, or its clients go on without them "+
				"(if it has no clients any more, delete %s there)", here, old.Size, wire.MarkerKey(s[0].config.KeyPrefix))
		}
	}
	return nil
}

// halfMoved reports whether a Regroup to this very list has marked the master within its
// guard, and no client has marked it since.
func (s *site) halfMoved() bool {
	m := s.marker
	age := s.seen.Time.Sub(m.Since)
	return m.Group.Set == s.group.Set && m.Of(s.host.RunID) && !m.New && m.ByNoClient() && 0 <= age && age < m.Hold
}

// mustShutOutTheOld refuses to regroup if clients of another list would not
// notice: only names distinguish lists with the same number of masters.
func (s sites) mustShutOutTheOld() error {
	for _, each := range s {
		old := each.marker.Group
		if old.Size > 0 && old.Set != each.group.Set && each.group.Differs(old) == nil {
			return &wire.Error{Node: each.addr, Err: fmt.Errorf("its clients have another list of %d masters, and would go on with it: stop them, or give both lists a name of their own (group %q, was %q)", old.Size, each.group.Name, old.Name)}
		}
	}
	return nil
}
