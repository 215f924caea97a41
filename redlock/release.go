package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// release deletes the lease from every node and waits until a quorum confirmed. The
// caller's context plays no part: a request that was cancelled must not leave its lock
// behind (L9).
func (l *Lease) release(since drift.Instant) error {
	if l.of != nil { // its tenure has seen to it
		l.observeEnd(LeaseReleased, nil)
		return nil
	}
	l.yield()
	return l.releaseBy(l.releaseCommand(), since)
}

// releaseBy is release with a command that may do more.
func (l *Lease) releaseBy(cmd *wire.Command, since drift.Instant) error {
	c := l.lock.client
	r := l.askRelease(cmd, since, nil)
	defer r.Free()
	c.seams.Wait(context.Background(), r.Ready()) // the round ends by itself
	err := l.confirmed(r)
	l.observeEnd(LeaseReleased, err)
	return err
}

// releaseLater is release for an owner that does not wait. Without an observer the
// answers are not counted.
func (l *Lease) releaseLater(since drift.Instant) {
	if l.of != nil {
		l.observeEnd(LeaseReleased, nil)
		return
	}
	l.yield()
	if l.lock.client.opt.observer == nil {
		l.giveBack()
		return
	}
	l.askRelease(l.releaseCommand(), since, (*confirmation)(l))
}

// confirmation is the round of a release whose owner does not wait.
type confirmation Lease

func (c *confirmation) Decided(r *quorum.Round) {
	l := (*Lease)(c)
	l.observeEnd(LeaseReleased, l.confirmed(r))
}

func (c *confirmation) Late(*quorum.Round, int, quorum.Ballot) {}

// yielding is a claim to a lock that a release hands on, so that it is not free for callers that
// do not queue, unless its holder yields.
type yielding interface {
	yield(value string, d time.Duration) *wire.Command
}

// yield has the release that follows leave the lock to callers that do not queue, if that is due.
// A fair lock is left to nobody: in a pause its own TryLock would be refused, since others wait.
func (l *Lease) yield() {
	cl, ok := l.claim.(yielding)
	if !ok || !l.lock.kind.passed || l.lock.opt.atLeast != nil {
		return
	}
	c := l.lock.client
	d := c.queues.Yield(l.lock, l.value)
	if d == 0 {
		return
	}
	c.send(cl.yield(l.value, d))
}

// askRelease has every node delete the lease's value.
func (l *Lease) askRelease(cmd *wire.Command, since drift.Instant, w quorum.Watcher) *quorum.Round {
	c := l.lock.client
	r := c.members.Ask(quorum.Question{Command: cmd, Judge: done{}, Watcher: w, Since: since})
	c.drop(l)
	return r
}

// giveBack sends the release to every node, and does not count the answers.
func (l *Lease) giveBack() {
	c := l.lock.client
	c.send(l.releaseCommand())
	c.drop(l)
}

// send gives a command to every node, and does not count the answers.
func (c *Client) send(cmd *wire.Command) {
	for _, n := range c.members.Nodes() {
		n.Do(cmd, nobodyAsks)
	}
}

func (l *Lease) releaseCommand() *wire.Command {
	l.mu.Lock()
	keep := l.longest
	l.mu.Unlock()
	return l.lock.keeping(l.claim.release(l.value, keep))
}

// confirmed reads the answers to the release of a lease that was valid when Unlock was
// called. A master that has nothing to delete refuses: another client may have had the
// lock there before. A majority that deleted it proves that no other client has held the
// lock (S54). If too many masters did not have it for such a majority, the lease had been
// lost: unless Close has deleted it meanwhile, or it has expired while the release was on
// its way.
func (l *Lease) confirmed(r *quorum.Round) error {
	t := r.Tally()
	answered := t.Conclusive() || t.Granted()+t.Refused() >= t.Need()
	switch {
	case t.Outcome() == quorum.Won, answered && (l.lock.client.closed.Load() || !l.lasts()):
		return nil
	case t.Conclusive():
		return l.lock.fail("unlock", ErrLost, r)
	}
	return l.lock.fail("unlock", l.lock.closedOr(ErrNoQuorum), r)
}

// lasts reports whether validity is left, whether or not the lease has ended: then no master
// can have let the key expire yet.
func (l *Lease) lasts() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wholeLeft(now) > 0
}

// A release is owed to a master until the master has confirmed it. Unlock returns when a
// majority has. A release that is still owed when its client ends stays undelivered, and
// the key keeps others out at that master for up to its TTL; with one such key at each of
// two masters out of three no client can lock (L39). So Close waits for owed releases. A release
// that waits for a stop is owed to all masters.

// owedWait bounds how long Close waits for masters that do not answer. A master that has
// not been asked for anything is owed nothing, and is not waited for.
const owedWait = 3 * time.Second

// creditor waits until every master has confirmed the releases that it is owed.
type creditor struct {
	client *Client
	timer  drift.Timer
	over   chan struct{}

	mu    seam.Mutex
	ended bool
}

// collect begins to wait until the masters have confirmed all releases, for up to owedWait and no
// longer than the keys may last.
func (c *Client) collect() {
	w := &creditor{client: c, over: make(chan struct{})}
	w.mu.In(c.seams.Steps)
	c.farewell.creditor.Store(w)
	if longest, _ := c.owed(); longest > 0 {
		for _, n := range c.members.Nodes() {
			if o, ok := n.(node.Owing); ok {
				o.Paid(w.paid)
			}
		}
		c.timers.Set(&w.timer, min(owedWait, longest), w)
	}
	w.paid() // the last may have been before we asked to be told
}

// await returns which releases are still owed when the wait is over.
func (w *creditor) await() error {
	if w.waits() {
		w.client.seams.Wait(context.Background(), w.over)
	}
	_, left := w.client.owed()
	return left
}

func (w *creditor) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended
}

// paid is called when a release no longer waits for its stop, or Close for the stop.
func (c *Client) paid() {
	if w := c.farewell.creditor.Load(); w != nil {
		w.paid()
	}
}

// paid is called when a master has confirmed the last of its owed releases.
func (w *creditor) paid() {
	if longest, _ := w.client.owed(); longest == 0 {
		w.end()
	}
}

// Fire ends the wait when its time is over.
func (w *creditor) Fire() { w.end() }

func (w *creditor) end() {
	w.mu.Lock()
	before := w.ended
	w.ended = true
	w.mu.Unlock()
	if !before {
		close(w.over)
	}
}

// owed returns an error that lists the owed releases, and for how long their keys may
// last at the masters: zero if Close need not wait for any of them.
func (c *Client) owed() (longest time.Duration, left error) {
	var all *multierror.Error
	for _, n := range c.members.Nodes() {
		o, ok := n.(node.Owing)
		if !ok {
			continue
		}
		if cmds := o.Owed(); len(cmds) > 0 {
			keep := slices.MaxFunc(cmds, func(a, b *wire.Command) int { return cmp.Compare(a.Keep, b.Keep) }).Keep
			longest = max(longest, keep)
			why := fmt.Errorf("not confirmed, and may stay for %v: %s", keep, listed(cmds))
			all = multierror.Append(all, &wire.Error{Node: n.Addr(), Op: wire.OpRelease, Err: why})
		}
	}
	for _, l := range c.leases() {
		if wait, withheld := l.owes(); withheld {
			longest = max(longest, wait)
			all = multierror.Append(all, &Error{Op: "release", Name: l.lock.name, Err: errStopRuns})
		}
	}
	if all == nil {
		return 0, nil
	}
	all.ErrorFormat = oneLine
	return longest, fmt.Errorf("redlock: close: %w: %w", ErrUndelivered, all)
}

// errStopRuns is why the release of a lease is not given.
var errStopRuns = errors.New("its stop has not returned, so that it ends with its TTL")

// maxListed is how many keys an error names.
const maxListed = 3

// listed names the keys that releases are for.
func listed(cmds []*wire.Command) string {
	var keys []string
	for _, cmd := range cmds {
		if key := fmt.Sprintf("%q", cmd.Keys[0]); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if more := len(keys) - maxListed; more > 0 {
		keys = append(keys[:maxListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(keys, ", ")
}
