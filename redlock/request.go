package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// A request to release a lock is stored at the masters in a key for each holder, which is
// named after the value of that holder's lease: values are never used again, so that no later
// holder is asked. The holder is notified, and reads the key. A message may be lost: so it also
// reads the key with each renewal. A lease whose holder has not called Requested does none of it.

// Request is the wish of another client that a holder releases its lock.
type Request struct {
	Client string // its client id
	Reason string // for people
}

// maxReason is the longest reason of a request, in bytes.
const maxReason = 1024

// holdersAtOnce is how many holders one command asks. A master runs it without a break.
const holdersAtOnce = 256

// RequestRelease asks the holder of the lock of that name to release it, whatever its kind: the
// leader of an election, the writer or all readers, all holders of permits. The holder learns of it
// if it has called Lease.Requested, and decides what to do: nothing ends because of a request. The
// reason is for people, at most 1024 bytes of UTF-8. The last request counts.
//
// RequestRelease returns when a majority of the masters has stored the request: whether the
// holder listens is not known. It returns ErrNotHeld if no client holds the lock, also where it is
// only kept (see AtLeast), and ErrNoQuorum when too few masters answered.
func (c *Client) RequestRelease(ctx context.Context, name, reason string) error {
	if len(reason) > maxReason {
		return fmt.Errorf("redlock: RequestRelease: reason of %d bytes: must be at most %d", len(reason), maxReason)
	}
	if !utf8.ValidString(reason) {
		return fmt.Errorf("redlock: RequestRelease: reason %.300q: must be UTF-8", reason)
	}
	found, err := c.Inspect(ctx, name)
	if err != nil {
		return err
	}
	l := c.lock(name, c.exclusive(name, lockOptions{}))
	holders := found.holders(c, name)
	if len(holders) == 0 {
		return l.failed("request", ErrNotHeld, nil)
	}
	client, _, _ := strings.Cut(c.self, "/")
	// By the masters' clocks: a client whose clock is behind would ask in vain.
	r := wire.Request{Number: c.mastersTime().UnixMicro(), Client: client, Reason: reason}
	for some := range slices.Chunk(holders, holdersAtOnce) {
		if err := l.request(ctx, some, r, found.lasts(c.opt.ttl)); err != nil {
			return err
		}
	}
	return nil
}

// holders returns the values of the holders that are there to be asked.
func (h *Holder) holders(c *Client, name string) (values []string) {
	if h.Kept {
		return nil
	}
	for _, s := range h.forced(c, name) {
		if s.nodes >= h.mayDecide() {
			values = append(values, s.value)
		}
	}
	return values
}

// lasts is for how long a request is of use: as long as the holders last without a renewal,
// with which they read it. Where none of them has an end, that is ttl.
func (h *Holder) lasts(ttl time.Duration) (longest time.Duration) {
	for _, v := range h.Nodes {
		longest = max(longest, v.Remaining)
		for _, s := range v.Shares {
			longest = max(longest, s.Remaining)
		}
	}
	return cmp.Or(longest, ttl)
}

// requestTries is how often a request is made that is outbid. One more is enough, unless many clients
// ask at once, or masters answer nonsense.
const requestTries = 8

// request has every master store a request. Masters keep a request that is not earlier, and the holder
// would never hear of ours. But its number can be of a clock that is ahead, and ours is behind after
// this machine was suspended: so it is made again above that number (L70).
func (l *lock) request(ctx context.Context, holders []string, r wire.Request, keep time.Duration) error {
	for tries := 1; ; tries++ {
		later, err := l.requestOnce(ctx, wire.MakeRequest(l.client.opt.prefix, holders, r, keep))
		if later == 0 || tries == requestTries {
			return err
		}
		r.Number = later + 1
	}
}

// requestOnce asks every master once. later is the highest number that a master has instead, if that
// is why there was no majority.
func (l *lock) requestOnce(ctx context.Context, cmd *wire.Command) (later int64, _ error) {
	c := l.client
	r := c.members.Ask(quorum.Question{Command: cmd, Judge: asked{}, Since: c.watch.Now()})
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return 0, l.fail("request", ended(ctx), r)
	}
	if r.Outcome() == quorum.Won {
		return 0, nil
	}
	for _, b := range r.Ballots(nil) {
		if number, ok := wire.OtherRequestOf(b.Reply); ok {
			later = max(later, number)
		}
	}
	return later, l.fail("request", l.closedOr(ErrNoQuorum), r)
}

// requests is what a lease knows of the requests to release it.
type requests struct {
	ch chan Request

	// These are guarded by the lease's mutex.
	last    wire.Request   // that was delivered; its number is -1 before the first
	told    []wire.Request // the last one that each master told of
	cancels []func()       // of subscriptions
}

// Requested returns a channel that delivers when another client asks for the release of this
// lock: see Client.RequestRelease. The lease does not change: unlock it, or do not. The channel
// has room for one request, and keeps the latest. It is never closed: wait for Done, too. Every
// call returns the same channel.
//
// The first call subscribes to messages of the masters, until the lease ends, and has each
// renewal, also by Extend, look for a request whose message was lost. A request that came before it is
// delivered, too, if it is younger than the TTL.
func (l *Lease) Requested() <-chan Request {
	if l.of != nil {
		return l.of.Requested()
	}
	nodes := l.lock.client.members.Nodes()
	r := &requests{ch: make(chan Request, 1), last: wire.Request{Number: -1}, told: make([]wire.Request, len(nodes))}
	if !l.requests.CompareAndSwap(nil, r) {
		return l.requests.Load().ch
	}
	var cancels []func()
	for i, n := range nodes {
		cancels = append(cancels, n.Subscribe(wire.RequestChannel(l.lock.client.opt.prefix, l.value), &requestListener{l, i}))
	}
	l.mu.Lock()
	r.cancels = cancels
	ended := l.cause != nil
	l.mu.Unlock()
	if ended {
		l.endRequests()
	}
	return r.ch
}

// endRequests ends the subscriptions of a lease that has ended.
func (l *Lease) endRequests() {
	r := l.requests.Load()
	if r == nil {
		return
	}
	l.mu.Lock()
	cancels := r.cancels
	r.cancels = nil
	l.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
}

// readRequests asks every master for a request, if the holder wants to know.
func (l *Lease) readRequests() {
	if l.requests.Load() == nil {
		return
	}
	for i := range l.lock.client.members.Nodes() {
		l.readRequest(i)
	}
}

// readRequest asks one master for a request. One is enough: a client has made it for this holder.
func (l *Lease) readRequest(i int) {
	l.lock.client.members.Nodes()[i].Do(wire.Requested(l.lock.client.opt.prefix, l.value), func(reply wire.Reply) {
		if said, ok := wire.RequestOf(reply); ok {
			l.deliver(i, said)
		}
	})
}

// deliver passes on what a master tells anew, if it is later than the last one: its number is higher,
// or a majority tells it. One master that tells of a higher number is enough, and what a late one or one
// that was away tells of an earlier request does not take the place of the last (L77). But the number is
// by the clock of who asks, and a minority of the masters may keep a request with a higher one (L70).
func (l *Lease) deliver(i int, said wire.Request) {
	r := l.requests.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	anew := said != r.told[i]
	r.told[i] = said
	later := said.Number > r.last.Number || r.byMajority(said)
	if !anew || !later || said == r.last || l.cause != nil {
		return
	}
	r.last = said
	seam.Latest(r.ch, Request{Client: said.Client, Reason: said.Reason}) // only we send, under the mutex
}

// byMajority reports whether a majority of the masters told of this request last.
func (r *requests) byMajority(said wire.Request) bool {
	n := 0
	for _, t := range r.told {
		if t == said {
			n++
		}
	}
	return n >= quorum.Size(len(r.told))
}

// requestListener reads the request at a master that may have one.
type requestListener struct {
	lease *Lease
	node  int
}

func (r *requestListener) Heard(string)   { r.Missed() }
func (r *requestListener) Doubted(string) { r.Missed() }
func (r *requestListener) Missed()        { r.lease.readRequest(r.node) }

// asked judges the replies to a request.
type asked struct{}

// Judge implements quorum.Judge.
func (asked) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	later, ok := wire.OtherRequestOf(r)
	return taken(ok && later == 0, ok)
}
