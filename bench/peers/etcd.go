package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/quorumlock/quorumlock/bench"
)

// etcd is a cluster of members on loopback.
type etcd struct {
	home      string
	members   []*exec.Cmd
	endpoints []string
}

// startEtcd starts n members. It needs etcd on the PATH (Debian: apt-get install etcd-server).
func startEtcd(n int) (_ *etcd, err error) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "bench-etcd-")
	if err != nil {
		return nil, err
	}
	e := &etcd{home: home}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	ports, err := freePorts(2 * n)
	if err != nil {
		return nil, err
	}
	var cluster []string
	for i := range n {
		cluster = append(cluster, fmt.Sprintf("m%d=http://127.0.0.1:%d", i, ports[n+i]))
	}
	for i := range n {
		client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[i]), fmt.Sprintf("http://127.0.0.1:%d", ports[n+i])
		cmd := exec.Command(program, "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(home, fmt.Sprint(i)),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new", "--logger", "zap", "--log-level", "error")
		if err := launch(cmd); err != nil {
			return nil, err
		}
		e.members, e.endpoints = append(e.members, cmd), append(e.endpoints, client)
	}
	return e, e.awaitReady()
}

func (e *etcd) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := e.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Put(ctx, "bench-ready", "yes")
	return err
}

func (e *etcd) dial() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: e.endpoints, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
}

func (e *etcd) close() {
	end(e.members)
	os.RemoveAll(e.home)
}

func (e *etcd) subject() bench.Subject {
	return bench.Subject{Name: "etcd on 3", Open: func(context.Context, []string) (bench.Client, error) {
		return e.open()
	}}
}

type etcdClient struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func (e *etcd) open() (c etcdClient, err error) {
	if c.client, err = e.dial(); err != nil {
		return c, err
	}
	c.session, err = concurrency.NewSession(c.client, concurrency.WithTTL(int(bench.TTL.Seconds())))
	if err != nil {
		c.client.Close()
	}
	return c, err
}

func (c etcdClient) Mutex(name string) bench.Mutex {
	return etcdMutex{concurrency.NewMutex(c.session, "/"+name)}
}

func (c etcdClient) Close() error {
	c.session.Close()
	return c.client.Close()
}

type etcdMutex struct{ m *concurrency.Mutex }

func (m etcdMutex) Lock(ctx context.Context) (bench.Lease, error) { return m, m.m.Lock(ctx) }
func (m etcdMutex) Unlock(ctx context.Context) error              { return m.m.Unlock(ctx) }
