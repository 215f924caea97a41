package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// The anchors are tables 2 and 3 of "ZooKeeper: Wait-free coordination for Internet-scale systems"
// (Hunt et al., 2010), measured here of ZooKeeper and others side by side, and what a coordination
// service is there for: how long nobody succeeds when one of its servers dies.

// service is a group of servers.
type service interface {
	dialer() (worker, error)
	killLeader() error // where there is one; else any server
	close()
}

// worker is a client of its own.
type worker interface {
	// turn creates a key with 1 KB of data, or takes a lock with such metadata. It waits for that, and
	// has it deleted without waiting.
	turn(ctx context.Context, key string) error
	// meet is one double barrier for n workers: it returns when all have come to the name and all have
	// left.
	meet(ctx context.Context, name string, me, n int) error
	close()
}

// anchor is a service that is measured.
type anchor struct {
	name  string
	start func(p *peers, servers int) (service, error)
}

var anchors = []anchor{
	{"redlock, in memory", func(_ *peers, n int) (service, error) { return startRedlock(n) }},
	{"redlock, appendfsync always", func(_ *peers, n int) (service, error) { return startRedlock(n, durably...) }},
	{"zookeeper, no sync", func(p *peers, n int) (service, error) { return p.zookeeper(n, "-Dzookeeper.forceSync=no") }},
	{"zookeeper", func(p *peers, n int) (service, error) { return p.zookeeper(n) }},
	{"etcd", func(_ *peers, n int) (service, error) { return etcdService(n) }},
}

var crews = []int{1, 10, 20}

const (
	partners = 50 // in a barrier
	payload  = 1000

	patience = 10 * time.Second // with a server that is asked something beside
)

func (p *peers) measureAnchors(ctx context.Context, out io.Writer) error {
	length, barriers := 4*time.Second, 20
	if p.quick {
		length, barriers = time.Second, 5
	}
	var failed []string
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tservers\t1 worker/s\t10 workers/s\t20 workers/s\tbarrier of %d\tnobody succeeds\t\n", partners)
	for _, servers := range []int{3, 5} {
		for _, a := range anchors {
			fmt.Fprintf(os.Stderr, "%s on %d\n", a.name, servers)
			row, err := p.anchor(ctx, a, servers, length, barriers)
			if err != nil {
				row += "\tfailed"
				failed = append(failed, fmt.Sprintf("%s on %d: %v", a.name, servers, err))
			}
			fmt.Fprintf(t, "%s\t%d%s\t\n", a.name, servers, row)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range failed {
		fmt.Fprintln(out, f)
	}
	return nil
}

// anchor measures a row of the table.
func (p *peers) anchor(ctx context.Context, a anchor, servers int, length time.Duration, barriers int) (row string, err error) {
	s, err := a.start(p, servers)
	if err != nil {
		return "", err
	}
	defer s.close()
	for _, k := range crews {
		turns, _, err := turns(ctx, s, k, length, nil)
		if err != nil {
			return row, err
		}
		row += fmt.Sprintf("\t%.0f", float64(turns)/length.Seconds())
	}
	each, err := meetings(ctx, s, barriers)
	if err != nil {
		return row, err
	}
	row += fmt.Sprintf("\t%.1f ms", 1000*each.Seconds())
	_, longest, err := turns(ctx, s, 8, max(length, 5*time.Second), s.killLeader)
	return row + fmt.Sprintf("\t%.0f ms", 1000*longest.Seconds()), err
}

// turns has k workers take turns for a while, each with keys of its own. A fault is made after a
// second. It returns how many turns succeeded, and the longest time in which none did.
func turns(ctx context.Context, s service, k int, length time.Duration, fault func() error) (n int64, longest time.Duration, err error) {
	crew, err := hire(s, k)
	if err != nil {
		return 0, 0, err
	}
	defer crew.dismiss()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var done atomic.Int64
	var mu sync.Mutex
	last := time.Now()
	failed := make(chan error, 1)
	var all sync.WaitGroup
	for i, w := range crew {
		all.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				err := w.turn(ctx, fmt.Sprintf("anchor-%d-%d-%d", k, i, j))
				switch {
				case ctx.Err() != nil:
					return
				case err != nil && fault == nil:
					select {
					case failed <- err:
					default:
					}
					return
				case err != nil:
					continue
				}
				done.Add(1)
				mu.Lock()
				now := time.Now()
				longest, last = max(longest, now.Sub(last)), now
				mu.Unlock()
			}
		})
	}
	if fault != nil {
		time.Sleep(time.Second)
		err = fault()
	}
	all.Wait()
	select {
	case e := <-failed:
		return 0, 0, e
	default:
	}
	return done.Load(), max(longest, time.Since(last)), err
}

// meetings has the partners meet at barriers, one after the other. It returns how long one takes.
func meetings(ctx context.Context, s service, barriers int) (each time.Duration, err error) {
	crew, err := hire(s, partners)
	if err != nil {
		return 0, err
	}
	defer crew.dismiss()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	errs := make([]error, partners)
	meet := func(round string, n int) {
		var all sync.WaitGroup
		for i, w := range crew {
			all.Go(func() {
				for b := 0; b < n && errs[i] == nil; b++ {
					errs[i] = w.meet(ctx, fmt.Sprintf("barrier-%s-%d", round, b), i, partners)
				}
			})
		}
		all.Wait()
	}
	meet("warm", 1)
	began := time.Now()
	meet("run", barriers)
	each = time.Since(began) / time.Duration(barriers)
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return 0, errs[i]
	}
	return each, nil
}

type crew []worker

func hire(s service, k int) (c crew, err error) {
	for range k {
		w, err := s.dialer()
		if err != nil {
			c.dismiss()
			return nil, err
		}
		c = append(c, w)
	}
	return c, nil
}

func (c crew) dismiss() {
	for _, w := range c {
		w.close()
	}
}

// bounded has at most so many deletions of a worker be under way.
type bounded chan struct{}

func (b bounded) run(f func()) {
	b <- struct{}{}
	go func() {
		defer func() { <-b }()
		f()
	}()
}

// wait returns when nothing is under way any more.
func (b bounded) wait() {
	for range cap(b) {
		b <- struct{}{}
	}
}
