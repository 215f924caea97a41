// Package operate is what operators do with masters: they declare them new (Init), or make
// them another group (Regroup). It talks to each master over a connection of its own.
package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// ErrNotNew: a master that was to be declared new has been used.
var ErrNotNew = errors.New("not new")

// Init marks masters that never held a lock, so that they may vote immediately. Without
// it, clients let a master without a marker wait for a restart guard, because it may
// have lost its memory. Init returns one line for each master: the action that it took.
//
// It marks all masters or, as far as it can know before, none. It writes nothing if a
// master cannot be reached, stores nothing, is a replica, is the same server as another, holds what
// may be a lock, or was used before (ErrNotNew). A master that has only been marked by a
// client that met it is as new as before, until its restart guard has passed. Init goes
// on only with an Init that failed halfway or runs at the same time: beside masters that
// are in use, one without a marker has lost its memory. If all are marked already and may
// vote, also for clients with the restart guard of the node.Config, it does nothing. The
// group's name may be empty; beside that it heeds KeyPrefix and what belongs to
// connecting.
func Init(ctx context.Context, addrs []string, group string, c node.Config) ([]string, error) {
	s, err := openSites(ctx, addrs, group, c)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.each((*site).mustBeNew); err != nil {
		return nil, err
	}
	if err := s.mustBeginTogether(); err != nil {
		return nil, err
	}
	if err := s.each((*site).declareNew); err != nil {
		return nil, err
	}
	return s.results(), nil
}

func (s *site) mustBeNew() error {
	m := s.marker
	switch {
	case m.RunID == "":
		return s.mustBeEmpty()
	case s.group.Differs(m.Group) != nil:
		return s.group.Differs(m.Group)
	case !m.After(s.seen.Promotion):
		return fmt.Errorf("%w: clients have used it before it was a replica; it may vote when the restart guard of its next client has passed", ErrNotNew)
	case !m.Of(s.host.RunID):
		return fmt.Errorf("%w: clients have used it before it was started anew; it may vote when the restart guard of its next client has passed", ErrNotNew)
	case s.unused():
		return s.mustBeEmpty()
	}
	return s.mustVote()
}

// mustVote refuses a master that may not vote yet.
func (s *site) mustVote() error {
	m := s.marker
	if age, hold := s.seen.Time.Sub(m.Since), max(m.Hold, s.config.Guard.Hold); age < hold {
		return fmt.Errorf("%w: it was marked %v ago; it may vote in %v, and needs nothing until then", ErrNotNew, age.Round(time.Second), (hold - age).Round(time.Second))
	}
	return nil
}

// unused reports whether no client has used the master, as far as markers tell.
func (s *site) unused() bool {
	m := s.marker
	return m.RunID == "" || m.Of(s.host.RunID) && m.After(s.seen.Promotion) && m.Unused(s.seen.Time)
}

// mustBeginTogether refuses to mark a master beside others that are in use: it
// has no marker because it has lost its memory (S14d). Masters that an Init has just
// marked, and which failed halfway, do not count as used.
func (s sites) mustBeginTogether() error {
	var unmarked []string
	unused, inUse := 0, 0
	for _, each := range s {
		switch m := each.marker; {
		case m.RunID == "":
			unmarked = append(unmarked, each.addr)
		case each.unused():
			unused++
		case !m.JustDeclared(each.seen.Time):
			inUse++
		}
	}
	switch {
	case len(unmarked)+unused == 0:
		return nil // there is nothing to do
	case inUse > 0 && len(unmarked) > 0:
		return &wire.Error{Node: strings.Join(unmarked, ", "), Err: besideMastersInUse(len(unmarked), inUse)}
	case inUse > 0:
		return s.each((*site).mustVote)
	}
	err := s.each(func(each *site) error {
		if each.unused() {
			return nil // which was looked at before
		}
		return each.mustBeEmpty()
	})
	if err != nil {
		return err
	}
	return s.each((*site).mustStore)
}

// besideMastersInUse says once why some masters without a marker are not new.
func besideMastersInUse(unmarked, inUse int) error {
	others := "another master is in use"
	if inUse > 1 {
		others = fmt.Sprintf("%d other masters are in use", inUse)
	}
	if unmarked == 1 {
		return fmt.Errorf("%w: it has no marker, but %s, so it may have forgotten locks; "+
			"it may vote when the restart guard of its next client has passed", ErrNotNew, others)
	}
	return fmt.Errorf("%w: they have no marker, but %s, so they may have forgotten locks; "+
		"they may vote when the restart guard of their next client has passed", ErrNotNew, others)
}

// declareNew marks the master, unless it is in use. Clients that meet it meanwhile mark it,
// too, and another Init may declare it new before we do.
func (s *site) declareNew() error {
	for range maxMarks {
		m := s.marker
		switch {
		case s.group.Differs(m.Group) != nil:
			return s.group.Differs(m.Group)
		case !s.unused() && (m.New || s.result == ""):
			s.result = s.addr + ": was marked already"
			return nil
		case !s.unused():
			return fmt.Errorf("%w: it was marked just now", ErrNotNew)
		}
		declared := guard.NewMaster(s.host.RunID, s.moment(), 0, s.group).Promoted(s.seen.Promotion)
		if err := s.markAlone(declared); err != nil {
			return err
		}
		s.result = s.addr + ": marked as new"
		if s.marker == declared {
			return nil
		}
	}
	return errors.New("clients keep changing its marker")
}

// moment is when the master is declared new: another moment for each master of a list, whatever their
// clocks say, since their memories are told apart by it (S15, S78).
func (s *site) moment() time.Time {
	const apart, most = 4 * time.Microsecond, 256 // NewMaster divides by four
	return s.seen.Time.Truncate(time.Millisecond).Add(time.Duration(s.index-most) * apart)
}
