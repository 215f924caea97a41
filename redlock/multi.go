package redlock

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Multi returns a lock that holds all the named locks or none, each the same lock as
// the Mutex of that name. It costs one round trip for any number of names, at most 1000, and
// cannot deadlock. ErrTaken says which name another client holds. The order of the names does
// not matter, and each may be named once.
//
// While one of the locks is taken, the waiter is notified when it is free, and then asks
// for all again; waiters for a single one of the other locks are served meanwhile. So
// where single locks are always wanted, a Multi may wait long.
func (c *Client) Multi(names []string, opts ...MultiOption) *Mutex {
	sorted := slices.Sorted(slices.Values(names))
	l := lockWith(c, strings.Join(sorted, ","), kind{}, opts)
	if err := c.checkNames(sorted, l.opt); err != nil {
		l.err = err
	}
	m := &multi{names: sorted, keys: wire.ManyOf(c.opt.prefix, sorted), fenced: l.opt.fenced}
	l.kind = kind{
		id:    fmt.Sprintf("multi:%q", sorted), // quoted: names may have commas
		label: "multi", registered: 1, names: sorted, claim: func() claim { return &several{multi: m, tokens: newTokens(c)} },
	}
	l.nest = nestOf(c, sorted)
	return &Mutex{l}
}

// nestOf returns the keys of the mutexes of these names.
func nestOf(c *Client, names []string) holders {
	all := make(holders, len(names))
	for i, name := range names {
		all[i] = holder{c, mutexes + c.opt.prefix + name}
	}
	return all
}

func (c *Client) checkNames(sorted []string, lo lockOptions) error {
	switch {
	case len(sorted) == 0:
		return fmt.Errorf("redlock: Multi: no names: at least 1 is needed")
	case len(sorted) > wire.MaxNames:
		return fmt.Errorf("redlock: Multi: %d names: at most %d are possible", len(sorted), wire.MaxNames)
	}
	for i, name := range sorted {
		if i > 0 && sorted[i-1] == name {
			return fmt.Errorf("redlock: Multi: lock name %q: listed twice", name)
		}
		if err := c.opt.checkLock(name, lo); err != nil {
			return err
		}
	}
	return nil
}

// multi is the kind of several locks that are taken as one. A vote is for all of them
// or for none.
type multi struct {
	names  []string // sorted
	keys   wire.Many
	fenced bool
}

// several is one claim to several locks, with one fencing token for all of them.
//
// As long as another client may have one of the locks, a waiter waits for that one and
// takes none of the others. When no client can have any of them, the votes are split,
// and minorities of this lock and of others could take turns endlessly. So the first
// waiter of all keeps its place for each lock. When the others ask again, they yield
// their grants to it, and do not get them back. The order is that of the tickets, so
// there is always a first, and it never yields.
type several struct {
	*multi
	tokens
	waitFor int // what the next ask waits for: see wire.WaitForFirst
	waited  int // and the last
}

func (s *several) Acquire(value string, ttl time.Duration) *wire.Command {
	return s.keys.Take(wire.OpAcquire, value, ttl, 0, s.least(), wire.WaitForFirst)
}

func (s *several) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
	s.waited = s.waitFor
	return s.keys.Take(wire.OpAsk, value, stay, ticket, s.least(), s.waitFor)
}

// least is the least counter that we want, zero if the locks are not fenced.
func (s *several) least() uint64 {
	if !s.fenced {
		return 0
	}
	return s.proposal()
}

func (s *several) extend(value string, ttl time.Duration) *wire.Command {
	return s.keys.Extend(value, ttl, s.token.Load())
}

func (s *several) repair(value string, ttl time.Duration) *wire.Command {
	return s.keys.Repair(value, ttl, s.token.Load())
}

func (s *several) release(value string, ttl time.Duration) *wire.Command {
	return s.keys.Release(value, ttl, s.token.Load())
}

// Judge is described at claim.
func (s *several) Judge(op wire.Op, r wire.Reply) quorum.Vote {
	if vote, ok := leaseVote(op, r); ok {
		return vote
	}
	if op == wire.OpCommit {
		return done{}.Judge(op, r)
	}
	granted := wire.Granted(r)
	if s.fenced {
		granted = wire.CounterOf(r) > 0
	}
	_, refused := wire.ManyRefusal(r, len(s.names))
	return taken(granted, refused)
}

// agree is described at agreeing.
func (s *several) agree(value string, _ time.Duration, ballots []quorum.Ballot) (quorum.Question, agreement, error) {
	if !s.fenced {
		return quorum.Question{}, nil, nil
	}
	var few [16]uint64
	return s.settle(counters(few[:0], ballots), func(token uint64) *wire.Command { return s.keys.Raise(value, token) }), nil, nil
}

// why names the lock that most masters lack.
func (s *several) Why(ballots []quorum.Ballot) error {
	lacking := make([]int, len(s.names))
	most := 0
	for _, b := range ballots {
		if said, ok := wire.ManyRefusal(b.Reply, len(s.names)); ok && b.Vote == quorum.Refused && said.Lock >= 0 {
			if lacking[said.Lock]++; lacking[said.Lock] > lacking[most] {
				most = said.Lock
			}
		}
	}
	if lacking[most] == 0 {
		return nil
	}
	return fmt.Errorf("%w: %q", ErrTaken, s.names[most])
}

// Reconsider decides how the next ask waits: see package waiting.
func (s *several) Reconsider(ballots []quorum.Ballot, called bool) (soon bool) {
	switch i := s.had(ballots); {
	case called && s.waitFor > 0:
		s.waitFor = wire.WaitForFirst
	case called:
	case i > 0:
		s.waitFor = i
		return s.waited == wire.WaitForEach // others must not wait for us meanwhile
	default:
		s.waitFor = wire.WaitForEach
		return true
	}
	return false
}

// had returns the number, from one, of a lock that another client may have at a majority:
// the masters that report this client and the masters that have not answered make one. It
// returns zero otherwise.
func (s *several) had(ballots []quorum.Ballot) int {
	type holder struct {
		lock int
		name string
	}
	pending, most, lock := 0, 0, 0
	count := map[holder]int{}
	for _, b := range ballots {
		if b.Vote == quorum.Pending {
			pending++
		}
		said, ok := wire.ManyRefusal(b.Reply, len(s.names))
		if b.Vote != quorum.Refused || !ok || said.Lock < 0 || said.Holder == "" && !said.Foreign {
			continue
		}
		h := holder{said.Lock, said.Holder}
		if count[h]++; count[h] > most {
			most, lock = count[h], said.Lock
		}
	}
	if most+pending < quorum.Size(len(ballots)) || most == 0 {
		return 0
	}
	return lock + 1
}
