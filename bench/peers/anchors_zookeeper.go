package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

func (p *peers) zookeeper(n int, properties ...string) (service, error) {
	return startZookeeper(p.root, n, properties...)
}

func (z *zookeeper) dialer() (worker, error) {
	conn, err := z.dial()
	if err != nil {
		return nil, err
	}
	return &zookeeperWorker{conn, make(bounded, 100)}, nil
}

func (z *zookeeper) killLeader() error {
	for i, at := range z.addrs {
		said, err := srvr(at)
		if err != nil {
			return err
		}
		if strings.Contains(said, "Mode: leader") {
			end(z.servers[i : i+1])
			return nil
		}
	}
	return errors.New("zookeeper: nobody leads")
}

// srvr asks a server how it is.
func srvr(at string) (string, error) {
	conn, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return "", err
	}
	said, err := io.ReadAll(conn)
	return string(said), err
}

type zookeeperWorker struct {
	conn *zk.Conn
	open bounded
}

var (
	everybody = zk.WorldACL(zk.PermAll)
	data      = []byte(text)
)

func (w *zookeeperWorker) turn(_ context.Context, key string) error {
	path, err := w.conn.Create("/bench/"+key, data, zk.FlagEphemeral, everybody)
	if err == nil {
		w.open.run(func() { w.conn.Delete(path, -1) })
	}
	return err
}

// meet is the recipe of the paper: whoever completes the barrier creates a child that all watch. Who
// leaves deletes its child, and waits until there is none.
func (w *zookeeperWorker) meet(_ context.Context, name string, me, n int) error {
	at, ready := "/bench/"+name, "/bench/"+name+"-ready"
	if _, err := w.conn.Create(at, nil, 0, everybody); err != nil && err != zk.ErrNodeExists {
		return err
	}
	there, _, opens, err := w.conn.ExistsW(ready)
	if err != nil {
		return err
	}
	mine, err := w.conn.Create(fmt.Sprintf("%s/%d", at, me), nil, zk.FlagEphemeral, everybody)
	if err != nil {
		return err
	}
	children, _, err := w.conn.Children(at)
	switch {
	case err != nil:
		return err
	case len(children) == n:
		if _, err := w.conn.Create(ready, nil, 0, everybody); err != nil && err != zk.ErrNodeExists {
			return err
		}
	case !there:
		<-opens
	}
	if err := w.conn.Delete(mine, -1); err != nil {
		return err
	}
	for {
		children, _, changes, err := w.conn.ChildrenW(at)
		if err != nil || len(children) == 0 {
			return err
		}
		<-changes
	}
}

func (w *zookeeperWorker) close() {
	w.open.wait()
	w.conn.Close()
}
