package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// home is the group of masters that has a lock. No group has it while its name moves: then home is the
// old group, with the last leases, and the new one.
type home struct {
	groups []masters
	said   string // which group that is; empty: there is only one
	moves  bool
}

// each returns the masters of each group. They are one group if --nodes names none, or --group chooses one.
func (m *masters) each() (all []masters, err error) {
	groups, err := m.Groups()
	if err != nil || groups == nil || m.Group != "" {
		return []masters{*m}, err
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		all = append(all, m.of(name))
	}
	return all, nil
}

// of returns the masters of a group.
func (m *masters) of(group string) masters {
	one := *m
	one.Group = group
	return one
}

// find returns the group that has the lock of that name. Its errors have exit codes.
func (m *masters) find(ctx context.Context, name string) (home, error) {
	all, err := m.each()
	switch {
	case err != nil:
		return home{}, err
	case len(all) == 1:
		return home{groups: all}, nil
	}
	if err := rehearse(name, redlock.NoRenew(), m.unguarded()...); err != nil {
		return home{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.Patience())
	defer cancel()
	told, err := m.told(ctx, name)
	if err != nil {
		return home{}, cli.Failed(err)
	}
	if told.Number == 0 {
		return home{}, cli.Fail(cli.ExitNoQuorum, fmt.Errorf("lock %q: no group has it: no master tells a map of groups (see redlock groups)", name))
	}
	names, h := where(told, name)
	for _, group := range names {
		if !slices.ContainsFunc(all, func(one masters) bool { return one.Group == group }) {
			return home{}, cli.Fail(cli.ExitConfig, fmt.Errorf("lock %q is in group %s, which --nodes does not give", name, group))
		}
		h.groups = append(h.groups, m.of(group))
	}
	return h, nil
}

// where returns the groups that a map names for the lock, and the home without their masters.
func where(told spread.Map, name string) ([]string, home) {
	old, next := spread.Highest(told.Groups, name), spread.Highest(told.Next, name)
	switch {
	case told.Settled() || next == old:
		return []string{old}, home{said: old}
	case old == "": // by the first map
		return []string{next}, home{said: next + ", to which the name moves: nobody gets it until then", moves: true}
	}
	return []string{old, next}, home{said: old + ", from which the name moves to group " + next + ": nobody gets it until then", moves: true}
}

// settled returns the masters of the group that has the lock, and an error while its name moves.
func (m *masters) settled(ctx context.Context, name string) (masters, error) {
	h, err := m.find(ctx, name)
	if err != nil {
		return masters{}, err
	}
	if h.moves {
		return masters{}, cli.Fail(cli.ExitNoQuorum, fmt.Errorf("lock %q: %w: group %s", name, redlock.ErrMoved, h.said))
	}
	return h.groups[0], nil
}

// told returns the newest map that a master of any group tells.
func (m *masters) told(ctx context.Context, name string) (newest spread.Map, err error) {
	groups, err := m.Groups()
	if err != nil {
		return newest, err
	}
	f, err := m.openAt(addressesOf(groups))
	if err != nil {
		return newest, err
	}
	defer f.Close()
	markers, votes := make([]memory, len(f)), make([]redlock.Vote, len(f))
	f.each(ctx, func(i int, one *node.Master, err error) {
		if err == nil {
			markers[i], err = recall(ctx, one, m.Prefix, defaults.TTL)
		}
		votes[i] = redlock.Vote{Node: one.Addr(), Vote: quorum.Granted}
		if err != nil {
			votes[i].Vote, votes[i].Err = quorum.Failed, err
		}
	})
	for _, one := range markers {
		if told, err := spread.Parse(one.group.Map); err == nil && told.Newer(newest) {
			newest = told
		}
	}
	if !slices.ContainsFunc(votes, func(v redlock.Vote) bool { return v.Err == nil }) {
		return newest, &redlock.Error{Op: "find", Name: name, Err: redlock.ErrNoQuorum, Votes: votes}
	}
	return newest, nil
}
