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
// Every client that knows the old group is shut out at once and loses its locks in
// time. The masters vote again, for clients of the new group, when the longest restart
// guard of any client has passed.
//
// That is the longest of node.Config.Guard.Hold and of those that the masters know of. It
// makes Regroup safe: a quorum of the old group must be among the masters, so that
// nothing new is granted there, and all of them count as having lost their memory
// after the last of them was told.
//
// What lasts longer than a lock is taken over by every master (S51): fencing counters,
// the sizes of semaphores, and who has arrived at latches.
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
	// What cannot be read is found before any client is shut out.
	if _, err := s.known(); err != nil {
		return nil, err
	}
	if err := s.move(); err != nil {
		return nil, err
	}
	return s.results(), nil
}

// move tells all masters of the new group, and has them take over what they know
// together.
//
// Invariant: what the old group has confirmed is read, and written everywhere, before
// anybody votes in the new one. A vote does not count that comes with another marker than
// its client knows, so all that was confirmed was stored before its masters were told, by
// a majority of them, and a majority of that is read afterwards. The masters are told
// again when all have it, and vote a guard later.
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
// Those that belonged to a group of this very list count for nothing, since all of it is
// here: they were left out when it was made smaller, say. And a Regroup that failed
// halfway has found the quorum that it has told since (S51b).
func (s sites) mustOutvoteTheOld() error {
	if slices.ContainsFunc(s, (*site).halfMoved) {
		return nil
	}
	members := make(map[int]int)
	for _, each := range s {
		if old := each.marker.Group; old.Set != each.group.Set {
			members[old.Size]++
		}
	}
	for size, here := range members {
		if size > 0 && 2*here <= size {
			return fmt.Errorf("%d of these masters belong to a group of %d: a quorum of it must be among them, or its clients go on without them "+
				"(if it has no clients any more, delete %s there)", here, size, wire.MarkerKey(s[0].config.KeyPrefix))
		}
	}
	return nil
}

// halfMoved reports whether a Regroup to this very list has told the master within its
// guard, and nobody has marked it since.
func (s *site) halfMoved() bool {
	m := s.marker
	age := s.seen.Time.Sub(m.Since)
	return m.Group.Set == s.group.Set && m.Of(s.host.RunID) && !m.New && m.ByNoClient() && 0 <= age && age < m.Hold
}

// mustShutOutTheOld refuses to regroup if clients of another list would not
// notice: those that have as many masters are told apart by names only.
func (s sites) mustShutOutTheOld() error {
	for _, each := range s {
		old := each.marker.Group
		if old.Size > 0 && old.Set != each.group.Set && each.group.Differs(old) == nil {
			return &wire.Error{Node: each.addr, Err: fmt.Errorf("its clients have another list of %d masters, and would go on with it: stop them, or give both lists a name of their own (group %q, was %q)", old.Size, each.group.Name, old.Name)}
		}
	}
	return nil
}
