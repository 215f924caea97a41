package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// lackingRights says which rights the user lacks at a majority of the masters, which look
// quarantined for that: a master whose marker cannot be read proves nothing of its memory, and
// one whose marker cannot be written tells no other client of our restart guard.
type lackingRights struct {
	error  // that no quorum votes
	rights string
}

// failure says what to do.
func (l *lackingRights) failure() error {
	return cli.Fail(cli.ExitConfig, &cli.Advised{Err: l.error, Advice: "the masters refuse " + l.rights + " (NOPERM): give the user the rights that docs/permissions.md lists; redlock doctor says which master refuses what"})
}

// explained returns which rights the user lacks if that may be the reason for err, and otherwise
// err.
func (m *masters) explained(ctx context.Context, err error) error {
	if !isQuarantine(err) {
		return err
	}
	return cmp.Or(m.lackingRights(ctx, err), err)
}

// lackingRights asks the masters which missing rights may be the reason for err; nil: none.
func (m *masters) lackingRights(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, m.Patience())
	defer cancel()
	f, failed := m.open()
	if failed != nil {
		return nil
	}
	defer f.Close()
	all := make([]facts, len(f))
	f.each(ctx, func(i int, one *node.Master, err error) {
		if err == nil {
			all[i].tryRights(ctx, one, m.Prefix)
		}
	})
	var rights []string
	lacking := 0
	for _, one := range all {
		lacks := slices.DeleteFunc(slices.Concat(one.Denied, one.Limited), func(right string) bool {
			return !slices.Contains(guarding, right) && !strings.HasPrefix(right, theKeys)
		})
		if len(lacks) > 0 {
			lacking++
		}
		for _, right := range lacks {
			if !slices.Contains(rights, right) {
				rights = append(rights, right)
			}
		}
	}
	if lacking <= len(all)-quorum.Size(len(all)) { // the others are enough
		return nil
	}
	return &lackingRights{err, cli.Plain(missing(rights))}
}

// guarding are the commands with which a client reads a master's memory, and SET, with
// which it writes its restart guard down: a master that did not take that gets no votes.
var guarding = []string{"GET", "MGET", "SET", "EVALSHA", "EVAL", "SCRIPT LOAD", "TIME"}
