package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/bench"
)

// renewing adds what a library leaves to its users: a goroutine with a ticker
// for each lock that is held, which extends it at a third of its TTL.
func renewing(s bench.Subject) bench.Subject {
	open := s.Open
	s.Name += " + ticker"
	s.Open = func(ctx context.Context, urls []string) (bench.Client, error) {
		c, err := open(ctx, urls)
		if err != nil {
			return nil, err
		}
		return renewingClient{c}, nil
	}
	return s
}

type renewingClient struct{ bench.Client }

func (c renewingClient) Mutex(name string) bench.Mutex { return renewingMutex{c.Client.Mutex(name)} }

type renewingMutex struct{ bench.Mutex }

func (m renewingMutex) Lock(ctx context.Context) (bench.Lease, error) {
	lease, err := m.Mutex.Lock(ctx)
	if err != nil {
		return nil, err
	}
	r := &renewed{Lease: lease, stop: make(chan struct{}), ended: make(chan struct{})}
	go r.renew()
	return r, nil
}

// extender is a lease that can be extended by its TTL.
type extender interface {
	Extend(ctx context.Context) error
}

type renewed struct {
	bench.Lease
	stop, ended chan struct{}
	lost        atomic.Bool
}

func (r *renewed) renew() {
	defer close(r.ended)
	ticker := time.NewTicker(bench.TTL / 3)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			if r.Lease.(extender).Extend(context.Background()) != nil {
				r.lost.Store(true)
				return
			}
		}
	}
}

// Lost reports whether an extension failed.
func (r *renewed) Lost() bool { return r.lost.Load() }

func (r *renewed) Unlock(ctx context.Context) error {
	close(r.stop)
	<-r.ended
	return r.Lease.Unlock(ctx)
}
