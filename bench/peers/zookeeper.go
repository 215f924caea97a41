package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/quorumlock/quorumlock/bench"
)

// zookeeper is an ensemble of servers on loopback.
type zookeeper struct {
	home    string
	servers []*exec.Cmd
	addrs   []string
}

// jars is where Debian's zookeeper package (apt-get install zookeeper) puts its
// classes and their dependencies.
const jars = "/usr/share/java"

// startZookeeper starts n servers. It needs java and Debian's package. ROOT is for a package that was
// unpacked elsewhere; properties are given to java.
func startZookeeper(root string, n int, properties ...string) (_ *zookeeper, err error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, jars)
	if _, err := os.Stat(filepath.Join(dir, "zookeeper.jar")); err != nil {
		return nil, fmt.Errorf("Debian's zookeeper package is not installed: %w", err)
	}
	home, err := os.MkdirTemp("", "bench-zookeeper-")
	if err != nil {
		return nil, err
	}
	z := &zookeeper{home: home}
	defer func() {
		if err != nil {
			z.close()
		}
	}()
	ports, err := freePorts(3 * n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		conf, err := z.configure(i, ports)
		if err != nil {
			return nil, err
		}
		args := append([]string{"-Xmx256m", "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.4lw.commands.whitelist=srvr"}, properties...)
		cmd := exec.Command(java, append(args, "-cp", dir+"/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", conf)...)
		if err := launch(cmd); err != nil {
			return nil, err
		}
		z.servers, z.addrs = append(z.servers, cmd), append(z.addrs, fmt.Sprintf("127.0.0.1:%d", ports[i]))
	}
	return z, z.awaitReady()
}

func (z *zookeeper) configure(i int, ports []int) (string, error) {
	dir := filepath.Join(z.home, fmt.Sprint(i+1))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n", dir, ports[i])
	n := len(ports) / 3
	for s := range n {
		text += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", s+1, ports[n+s], ports[2*n+s])
	}
	conf := filepath.Join(dir, "zoo.cfg")
	return conf, errors.Join(os.WriteFile(conf, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "myid"), []byte(fmt.Sprint(i+1)), 0o600))
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (z *zookeeper) dial() (*zk.Conn, error) {
	conn, _, err := zk.Connect(z.addrs, 30*time.Second, zk.WithLogger(silent{}))
	return conn, err
}

func (z *zookeeper) awaitReady() error {
	conn, err := z.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		_, err := conn.Create("/bench", nil, 0, zk.WorldACL(zk.PermAll))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (z *zookeeper) close() {
	end(z.servers)
	os.RemoveAll(z.home)
}

func (z *zookeeper) subject() bench.Subject {
	return bench.Subject{Name: "zookeeper on 3", Open: func(context.Context, []string) (bench.Client, error) {
		conn, err := z.dial()
		if err != nil {
			return nil, err
		}
		return zookeeperClient{conn}, nil
	}}
}

type zookeeperClient struct{ conn *zk.Conn }

func (c zookeeperClient) Close() error { c.conn.Close(); return nil }

func (c zookeeperClient) Mutex(name string) bench.Mutex {
	return zookeeperMutex{zk.NewLock(c.conn, "/bench/"+strings.ReplaceAll(name, "/", "-"), zk.WorldACL(zk.PermAll))}
}

type zookeeperMutex struct{ l *zk.Lock }

func (m zookeeperMutex) Lock(context.Context) (bench.Lease, error) { return m, m.l.Lock() }
func (m zookeeperMutex) Unlock(context.Context) error              { return m.l.Unlock() }
