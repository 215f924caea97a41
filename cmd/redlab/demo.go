package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

func newDemoCommand() *cobra.Command {
	var m cli.Masters
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Show what a lock on five masters survives, in about 20 seconds",
		Long: `Demo starts five masters inside this process and shows a lock being taken,
waited for, kept while two masters die, lost in time with the third, and handed
on when they come back; and how a fencing token stops the write of a holder that
stood still. With --nodes it uses your masters instead, and kills none of them.
It checks everything that it says: the exit code is 0 if all of it was true, 1
if something was not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ttl < time.Second || ttl > time.Minute {
				return cli.Usage("--ttl %v: must be from 1s to 1m", ttl)
			}
			d := &demo{page: newPage(cmd.OutOrStdout()), ttl: ttl, name: "redlock-demo-" + rand.Text()[:8]}
			if len(m.Nodes) > 0 {
				return d.onRealMasters(&m)
			}
			return d.onEmbeddedMasters(&m)
		},
	}
	m.Register(cmd.Flags(), 500*time.Millisecond) // generous, for a busy machine
	cmd.Flags().Lookup("nodes").Usage = "use these `masters` instead of five embedded ones, and kill none of them"
	cmd.Flags().DurationVar(&ttl, "ttl", 3*time.Second, "the TTL of the lock, which sets the pace")
	return cmd
}

// demo is the story of a lock that alice holds and bob waits for. Every scene checks
// its own sentences and returns an error if one of them is false.
type demo struct {
	*page
	name string
	ttl  time.Duration

	nodes           []*embedded // none with --nodes
	alice, bob, eye *redlock.Client
	failures        failures

	held    *redlock.Lease // alice's
	since   time.Time      // when she got it
	waiting chan turn      // delivers how bob's wait ended
}

// turn is how bob's wait ended.
type turn struct {
	lease *redlock.Lease
	at    time.Time
	err   error
}

func (d *demo) onEmbeddedMasters(m *cli.Masters) (err error) {
	if d.nodes, err = startEmbedded(5); err != nil {
		return err
	}
	defer stopEmbedded(d.nodes)
	for _, n := range d.nodes {
		m.Nodes = append(m.Nodes, n.addr())
	}
	// No lock was ever held there, so that they need not wait for a restart guard.
	if _, err := redlock.Init(context.Background(), m.Nodes, m.Options()...); err != nil {
		return cli.Failed(err)
	}
	fmt.Fprintf(d.w, "Five Redis masters in this process, each on its own: there is no replication.\n"+
		"A client has the lock when three of the five have granted it. A grant ends\n"+
		"after %v (the TTL), unless it is renewed.\n", d.ttl)
	return d.play(m,
		d.take, d.refuse, d.loseOne, d.loseAnother, d.outlive, d.loseTheThird, d.comeBack, d.finish, d.fence)
}

func (d *demo) onRealMasters(m *cli.Masters) error {
	fmt.Fprintf(d.w, "Your masters. Nothing is killed here: to see masters die, run the demo without\n"+
		"--nodes, or stop yours by hand while it runs with a long --ttl.\n"+
		"The lock is %s; its TTL is %v.\n", d.name, d.ttl)
	return d.play(m, d.take, d.refuse, d.outlive, d.handOver, d.finish)
}

// play connects three clients and runs the scenes.
func (d *demo) play(m *cli.Masters, scenes ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		client **redlock.Client
		name   string
		extra  []redlock.Option
	}{
		{&d.alice, "alice", []redlock.Option{redlock.WithObserver(d.failures.observe)}},
		{&d.bob, "bob", nil},
		{&d.eye, "eye", nil},
	} {
		client, err := d.connect(ctx, m, append(c.extra, redlock.WithClientID(c.name))...)
		if err != nil {
			return cli.Failed(err)
		}
		defer client.Close()
		*c.client = client
	}
	d.header(len(d.look(ctx)))
	d.start = time.Now()
	for _, scene := range scenes {
		if err := scene(ctx); err != nil {
			return cli.Fail(cli.ExitFailure, fmt.Errorf("the demo did not go as it must: %w", err))
		}
	}
	return nil
}

func (d *demo) connect(ctx context.Context, m *cli.Masters, opts ...redlock.Option) (*redlock.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.ConnectPatience)
	defer cancel()
	// The story tells what a log would say.
	return m.Dial(ctx, io.Discard, append(append(m.Options(), redlock.WithTTL(d.ttl)), opts...)...)
}

// take has alice take the lock, on every node that is up.
func (d *demo) take(ctx context.Context) (err error) {
	start := time.Now()
	d.held, err = d.alice.Mutex(d.name).TryLock(ctx)
	if errors.Is(err, guard.ErrQuarantined) {
		d.say(d.look(ctx), "some nodes are new, or may have forgotten locks:")
		d.add("they do not vote until every such lock has ended (restart guard)")
		d.held, err = d.alice.Mutex(d.name).Lock(ctx)
	}
	if err != nil {
		return err
	}
	d.since = time.Now()
	pic, err := d.expect(ctx, picture.aliceEverywhere, "the lock on every node that is up")
	if err != nil {
		return err
	}
	d.say(pic, "alice takes the lock in %s", round(d.since.Sub(start)))
	d.add("granted by %s; valid for %s, renewed meanwhile", pic.numbers(markAlice), round(time.Until(d.held.Until())))
	d.beat(1)
	return nil
}

// refuse has bob try, be refused, and wait.
func (d *demo) refuse(ctx context.Context) error {
	_, err := d.bob.Mutex(d.name).TryLock(ctx)
	if !errors.Is(err, redlock.ErrTaken) {
		return fmt.Errorf("bob tried the lock that alice holds and got %v, not %v", err, redlock.ErrTaken)
	}
	d.waiting = make(chan turn, 1)
	go func() {
		lease, err := d.bob.Mutex(d.name).Lock(ctx)
		d.waiting <- turn{lease, time.Now(), err}
	}()
	pic := d.look(ctx)
	d.say(pic, "bob wants it too, is refused, and waits")
	d.add("%s, which decides", votes(err))
	d.beat(1.5)
	return nil
}

func (d *demo) loseOne(ctx context.Context) error { return d.kill(ctx, 1) }

func (d *demo) loseAnother(ctx context.Context) error {
	if err := d.kill(ctx, 2); err != nil {
		return err
	}
	return nil
}

// kill kills the next node, so that n are down, and waits for alice's lease to
// be renewed without it.
func (d *demo) kill(ctx context.Context, n int) error {
	pic, err := d.killOne(ctx, n)
	if err != nil {
		return err
	}
	before := time.Now()
	d.say(pic, "node %d is killed", n)
	// Her lease ends later than a lease that was taken or renewed before could.
	renewed := func() bool { return d.held.Until().Sub(before) > d.ttl }
	if !eventually(demoPatience, func() bool { return renewed() || !d.held.Valid() }) || !d.held.Valid() {
		return fmt.Errorf("alice's lease was not renewed although %d of %d nodes are up", len(pic)-n, len(pic))
	}
	pic = d.look(ctx)
	d.say(pic, "alice's lease is renewed all the same, by %s", pic.numbers(markAlice))
	d.beat(1)
	return nil
}

// killOne kills node n, counted from 1.
func (d *demo) killOne(ctx context.Context, n int) (picture, error) {
	d.nodes[n-1].kill()
	return d.expect(ctx, func(p picture) bool {
		kept := p.count(markAlice) == len(p)-n || n == 3 && !d.held.Valid() // if it took us so long to look
		return p.count(markDown) == n && kept
	},
		fmt.Sprintf("%d nodes down, and the lock on all others", n))
}

// outlive shows that the lease has outlived the TTL that it began with.
func (d *demo) outlive(ctx context.Context) error {
	time.Sleep(time.Until(d.since.Add(d.ttl + d.ttl/10)))
	if !d.held.Valid() {
		return fmt.Errorf("alice's lease should have been renewed beyond its TTL, but it ended: %v", d.held.Err())
	}
	if err := d.stillWaiting(); err != nil {
		return err
	}
	d.say(d.look(ctx), "alice has had it for longer than its TTL; bob is waiting")
	d.beat(1)
	return nil
}

// loseTheThird takes the quorum away, and measures when alice is notified.
func (d *demo) loseTheThird(ctx context.Context) error {
	d.failures.forget()
	ended, err := d.watchTheEnd()
	if err != nil {
		return err
	}
	pic, err := d.killOne(ctx, 3)
	if err != nil {
		return err
	}
	d.say(pic, "node 3 is killed: two of five are no quorum")
	if left := time.Until(d.held.Until()); left > 0 {
		d.add("alice's lease is valid for another %s", round(left))
	}

	var end ending
	select {
	case end = <-ended:
	case <-time.After(demoPatience + 2*d.ttl):
		return errors.New("alice was never told of her loss")
	}
	switch {
	case !errors.Is(end.cause, redlock.ErrExpired):
		return fmt.Errorf("alice's lease ended with %v, not %v", end.cause, redlock.ErrExpired)
	case !end.until.Before(end.forgets):
		return errors.New("alice's lease was valid when node 3 would already have granted the lock to another client")
	}
	if pic, err = d.expect(ctx, picture.freeEverywhere, "nothing of alice's lock on the nodes that are up"); err != nil {
		return err
	}
	count, last := d.failures.seen()
	d.sayOf(end.told, pic, "alice is told that she has lost the lock")
	if count > 0 {
		d.add("%s failed: %s", words.Counted(count, "renewal"), votes(last))
	}
	d.tellHowEarly(end)
	d.beat(2)
	return d.bobWaitsOn(ctx)
}

// tellHowEarly compares three times. The announcement needs the processor, so it can
// be late on a busy machine. Lease.Valid cannot.
func (d *demo) tellHowEarly(end ending) {
	if end.told.Before(end.forgets) {
		d.add("told %s, and %s before", ahead(end.until.Sub(end.told)), round(end.forgets.Sub(end.told)))
		d.add("node 3, if it came back now, would grant it to others")
		return
	}
	d.add("told %s", ahead(end.until.Sub(end.told)))
	d.add("but Valid() was false in time: %s before node 3,", round(end.forgets.Sub(end.until)))
	d.add("had it come back, would have granted it to others")
}

// ahead tells by how much the announcement came before the end of the validity.
func ahead(margin time.Duration) string {
	if margin < 0 {
		return round(-margin) + " too late, on a busy machine"
	}
	return round(margin) + " before her validity ends"
}

// bobWaitsOn shows that the nodes that are left do not give the lock to bob.
func (d *demo) bobWaitsOn(ctx context.Context) error {
	pic, err := d.expect(ctx, picture.freeEverywhere,
		"nothing of alice's lock on the nodes that are up")
	if err != nil {
		return err
	}
	if err := d.stillWaiting(); err != nil {
		return err
	}
	d.say(pic, "bob waits on: two of five cannot give it to him either")
	d.beat(1)
	return nil
}

// ending is how alice's lease ended.
type ending struct {
	until   time.Time // when its validity was to end
	forgets time.Time // when node 3 was to forget it
	told    time.Time // when its context ended
	cause   error
}

// watchTheEnd watches alice's lease until it ends. Node 3 counts in every renewal now.
// As long as it would remember her lock if it came back, no other client can have a
// quorum.
func (d *demo) watchTheEnd() (<-chan ending, error) {
	var end ending
	look := func() bool {
		until, forgets := d.deadlines()
		if until.IsZero() || forgets.IsZero() {
			return false
		}
		end.until, end.forgets = until, forgets
		return true
	}
	if !eventually(demoPatience, func() bool { return look() || !d.held.Valid() }) || end.until.IsZero() {
		return nil, fmt.Errorf("alice should have the lock until node 3 is killed, but her lease ended: %v", d.held.Err())
	}
	ended, over := make(chan ending, 1), d.held.Context()
	go func() {
		for {
			select {
			case <-over.Done():
				end.told, end.cause = time.Now(), context.Cause(over)
				ended <- end
				return
			case <-time.After(d.ttl / 100):
				look()
			}
		}
	}()
	return ended, nil
}

// deadlines are when the validity of alice's lease ends and when node 3 forgets it,
// both by the same renewal. They are zero if one of them is not known, or if the
// machine was too busy to read both together.
func (d *demo) deadlines() (until, forgets time.Time) {
	asked := time.Now()
	until = d.held.Until() // first: a renewal in between makes only the other later
	_, rest := d.nodes[2].remembers(d.name)
	if rest <= 0 || time.Since(asked) > d.ttl/1000 {
		return time.Time{}, time.Time{}
	}
	return until, asked.Add(rest)
}

// comeBack restarts the dead nodes, and bob gets his turn.
func (d *demo) comeBack(ctx context.Context) error {
	start := d.say(d.look(ctx), "nodes 1, 2 and 3 are started, with the memory they had")
	d.add("(without, the restart guard would hold them back for %v)", d.ttl)
	for i, n := range d.nodes[:3] {
		if err := n.restart(); err != nil {
			return fmt.Errorf("restart node %d: %w", i+1, err)
		}
	}
	if _, err := d.expect(ctx, func(p picture) bool { return p.count(markDown) == 0 }, "all nodes up"); err != nil {
		return err
	}
	return d.bobsTurn(ctx, start)
}

// handOver has alice unlock, and bob gets his turn.
func (d *demo) handOver(ctx context.Context) error {
	start := d.say(d.look(ctx), "alice unlocks")
	if err := d.held.Unlock(ctx); err != nil {
		return err
	}
	return d.bobsTurn(ctx, start)
}

// bobsTurn waits until bob has the lock, and tells how long after start, the time of the
// line before.
func (d *demo) bobsTurn(ctx context.Context, start time.Time) error {
	var got turn
	select {
	case got = <-d.waiting:
	case <-time.After(demoPatience):
		return fmt.Errorf("bob did not get the lock within %v", demoPatience)
	}
	if got.err != nil {
		return fmt.Errorf("bob did not get the lock: %w", got.err)
	}
	d.held = got.lease
	pic, err := d.expect(ctx, func(p picture) bool { return p.count(markBob) >= quorum.Size(len(p)) && p.count(markAlice) == 0 },
		"bob's lock on a quorum")
	if err != nil {
		return err
	}
	d.sayOf(got.at, pic, "bob has the lock, after %s", round(got.at.Sub(start)))
	d.add("granted by %s; valid for %s", pic.numbers(markBob), round(time.Until(d.held.Until())))
	d.beat(1.5)
	return nil
}

// finish has bob unlock, and nothing is left.
func (d *demo) finish(ctx context.Context) error {
	if err := d.held.Unlock(ctx); err != nil {
		return err
	}
	pic, err := d.expect(ctx, picture.freeEverywhere, "nothing left on any node")
	if err != nil {
		return err
	}
	d.say(pic, "bob unlocks; nothing is left on any node")
	return nil
}

func (d *demo) stillWaiting() error {
	select {
	case t := <-d.waiting:
		return fmt.Errorf("bob should be waiting, but Lock returned: lease %v, error %v", t.lease != nil, t.err)
	default:
		return nil
	}
}

// beat leaves time to read, in thirds of a TTL.
func (d *demo) beat(thirds float64) { time.Sleep(time.Duration(thirds * float64(d.ttl) / 3)) }

// look asks every node who holds the lock.
func (d *demo) look(ctx context.Context) picture {
	h, _ := d.eye.Inspect(ctx, d.name) // without a quorum, it shows what there is
	return pictureOf(h)
}

// demoPatience is how long a scene waits for its event. It is far longer than
// necessary, for a busy machine.
const demoPatience = 15 * time.Second

// expect looks until the nodes show the expected picture.
func (d *demo) expect(ctx context.Context, ok func(picture) bool, want string) (pic picture, err error) {
	if eventually(demoPatience, func() bool { pic = d.look(ctx); return ok(pic) }) {
		return pic, nil
	}
	return pic, fmt.Errorf("expected %s, but the nodes show %s", want, (&page{}).row(pic))
}

// votes tells how the nodes voted in an operation that failed.
func votes(err error) string {
	e := new(redlock.Error)
	if !errors.As(err, &e) || len(e.Votes) == 0 {
		return "no node was asked"
	}
	var groups []string
	for _, k := range []struct {
		vote quorum.Vote
		text string
	}{
		{quorum.Granted, "granted by"},
		{quorum.Refused, "refused by"},
		{quorum.Failed, "no answer from"},
	} {
		var nodes []string
		for i, v := range e.Votes {
			if v.Vote == k.vote {
				nodes = append(nodes, fmt.Sprint(i+1))
			}
		}
		if nodes != nil {
			groups = append(groups, k.text+" "+strings.Join(nodes, " "))
		}
	}
	return strings.Join(groups, ", ")
}

// failures remembers alice's renewals that failed.
type failures struct {
	mu    sync.Mutex
	count int
	last  error
}

func (f *failures) observe(e redlock.Event) {
	if e.Kind != redlock.LeaseRenewed || e.Err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	f.last = e.Err
}

func (f *failures) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count, f.last = 0, nil
}

func (f *failures) seen() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count, f.last
}

// eventually tries until ok, at most for the given time.
func eventually(within time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
