package main

import (
	"context"
	"errors"

	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

func etcdService(n int) (service, error) { return startEtcd(n) }

func (e *etcd) dialer() (worker, error) {
	c, err := e.open()
	return &etcdWorker{c, make(bounded, 100)}, err
}

func (e *etcd) killLeader() error {
	client, err := e.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, at := range e.endpoints {
		status, err := client.Status(ctx, at)
		if err != nil {
			return err
		}
		if status.Leader == status.Header.MemberId {
			end(e.members[i : i+1])
			return nil
		}
	}
	return errors.New("etcd: nobody leads")
}

type etcdWorker struct {
	etcdClient
	open bounded
}

// turn takes etcd's own lock, which has no data.
func (w *etcdWorker) turn(ctx context.Context, key string) error {
	m := concurrency.NewMutex(w.session, "/"+key)
	if err := m.Lock(ctx); err != nil {
		return err
	}
	w.open.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		m.Unlock(ctx)
	})
	return nil
}

func (w *etcdWorker) meet(_ context.Context, name string, _, n int) error {
	b := recipe.NewDoubleBarrier(w.session, "/"+name, n)
	if err := b.Enter(); err != nil {
		return err
	}
	return b.Leave()
}

func (w *etcdWorker) close() {
	w.open.wait()
	w.etcdClient.Close()
}
