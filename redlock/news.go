package redlock

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
)

// news wakes one caller whenever something may have changed at a master: when a
// message says so, when messages may have been missed, and every now and then.
type news struct {
	client *Client
	every  time.Duration
	ready  chan struct{} // holds one wake-up
	timer  drift.Timer

	mu          seam.Mutex
	unsubscribe []func()
	heard       int // messages
	until       int // the message that wakes the caller, counted from one
}

// follow listens to a channel at every master, until end is called.
func (c *Client) follow(channel string, every time.Duration) *news {
	n := &news{client: c, every: every, ready: make(chan struct{}, 1)}
	n.mu.In(c.seams.Steps)
	c.mu.Lock()
	c.followers = append(c.followers, n)
	c.mu.Unlock()
	for _, master := range c.members.Nodes() {
		cancel := master.Subscribe(channel, n)
		n.mu.Lock()
		n.unsubscribe = append(n.unsubscribe, cancel)
		n.mu.Unlock()
	}
	return n
}

// wait returns when there is news, ctx ends or the client is closed.
func (n *news) wait(ctx context.Context) error {
	if n.client.closed.Load() {
		return ErrClosed // messages have stopped
	}
	n.client.timers.Set(&n.timer, n.client.jitter(n.every), n)
	if err := n.client.seams.Wait(ctx, n.ready); err != nil {
		return ended(ctx)
	}
	if n.client.closed.Load() {
		return ErrClosed
	}
	return nil
}

// listen has no message wake the caller until expect is called. It returns how many have
// been heard.
func (n *news) listen() (heard int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.until = math.MaxInt
	return n.heard
}

// expect has messages wake the caller when so many have been heard.
func (n *news) expect(heard int) {
	n.mu.Lock()
	n.until = heard
	wake := n.heard >= n.until
	n.mu.Unlock()
	if wake {
		n.wake()
	}
}

// Heard wakes the caller if it does not expect more messages. A message without text
// stands for any number of changes.
func (n *news) Heard(message string) {
	n.mu.Lock()
	n.heard++
	wake := n.heard >= n.until || message == ""
	n.mu.Unlock()
	if wake {
		n.wake()
	}
}

// Doubted, Missed and Fire wake the caller.
func (n *news) Doubted(string) { n.wake() }
func (n *news) Missed()        { n.wake() }
func (n *news) Fire()          { n.wake() }

func (n *news) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ready) == 0 {
		n.ready <- struct{}{}
	}
}

func (n *news) end() {
	c := n.client
	c.timers.Cancel(&n.timer)
	c.mu.Lock()
	c.followers = slices.DeleteFunc(c.followers, func(f *news) bool { return f == n })
	c.mu.Unlock()
	n.mu.Lock()
	unsubscribe := n.unsubscribe
	n.unsubscribe = nil
	n.mu.Unlock()
	for _, cancel := range unsubscribe {
		cancel()
	}
}

// wakeFollowers ends every wait for news, because the client was closed.
func (c *Client) wakeFollowers() {
	c.mu.Lock()
	for _, latch := range slices.Sorted(maps.Keys(c.lookouts)) {
		for _, w := range c.lookouts[latch].waiters {
			w.notify()
		}
	}
	followers := slices.Clone(c.followers)
	c.mu.Unlock()
	for _, n := range followers {
		n.wake()
	}
}
