package chaos

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// fleet is everything that runs: masters, the storage, a link from every
// client to every master, and the clients.
type fleet struct {
	masters []*redistest.Server
	storage *redistest.Server
	links   []*faultproxy.Proxy // client*masters + master
	clients []*client
}

// assemble starts the servers and makes the links. The clients are yet to be
// started.
func assemble(c *Config) (f *fleet, err error) {
	f = &fleet{}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	for i := range c.Masters {
		m, err := redistest.Run(c.options(i)...)
		if err != nil {
			return nil, err
		}
		f.masters = append(f.masters, m)
	}
	if f.storage, err = redistest.Run(); err != nil {
		return nil, err
	}
	for i := range c.Clients {
		var addrs []string
		for _, m := range f.masters {
			link, err := faultproxy.Run(m.Addr())
			if err != nil {
				return nil, err
			}
			f.links = append(f.links, link)
			addrs = append(addrs, link.Addr())
		}
		f.clients = append(f.clients, c.client(i, addrs, f.storage.Addr()))
	}
	return f, nil
}

// options are those of one master.
func (c *Config) options(master int) []redistest.Option {
	opts := []redistest.Option{
		redistest.Config("enable-debug-command", "local"),
		redistest.Config("lua-time-limit", "50"),
	}
	if c.durable(master) {
		opts = append(opts, redistest.AOF())
	}
	if master%5 == 4 { // the others sync every write
		opts = append(opts, redistest.Config("appendfsync", "everysec"))
	}
	if c.adjustable(master) {
		opts = append(opts, redistest.Faketime())
	}
	return opts
}

func (c *Config) client(number int, masters []string, storage string) *client {
	config := ClientConfig{
		Masters: masters, Storage: storage, TTL: c.ttlOf(number), NodeTimeout: nodeTimeout,
		Seed: c.Seed, Unguarded: c.Unguarded,
	}
	for _, w := range c.Workloads {
		config.Workloads = append(config.Workloads, w.Name)
	}
	return &client{number: number, command: c.ClientCommand, config: config, dir: c.Dir}
}

// dismiss has all clients give everything up and end, at the same time.
func (f *fleet) dismiss() {
	var all sync.WaitGroup
	for _, c := range f.clients {
		all.Go(func() { c.dismiss() })
	}
	all.Wait()
}

func (f *fleet) close() {
	for _, c := range f.clients {
		c.kill()
	}
	for _, l := range f.links {
		l.Close()
	}
	for _, m := range f.masters {
		m.Close()
	}
	if f.storage != nil {
		f.storage.Close()
	}
}

// key is a key at a master.
type key struct {
	master      int
	name, value string // the value of a string, else its type
	remaining   int64  // in milliseconds; -1: no end
}

// keys returns all that the masters store.
func (f *fleet) keys() (all []key, err error) {
	for i, m := range f.masters {
		names, err := redis.Strings(m.Do("KEYS", "*"))
		if err != nil {
			return nil, fmt.Errorf("master %d: %w", i, err)
		}
		for _, name := range names {
			k, err := look(m, name)
			if errors.Is(err, redis.ErrNil) {
				continue // it has just ended
			}
			if err != nil {
				return nil, fmt.Errorf("master %d: %w", i, err)
			}
			k.master = i
			all = append(all, k)
		}
	}
	return all, nil
}

func look(m *redistest.Server, name string) (k key, err error) {
	k.name = name
	if k.remaining, err = redis.Int64(m.Do("PTTL", name)); err != nil {
		return k, err
	}
	if k.remaining == -2 {
		return k, redis.ErrNil
	}
	kind, err := redis.String(m.Do("TYPE", name))
	if err != nil || kind != "string" {
		k.value = kind
		return k, err
	}
	k.value, err = redis.String(m.Do("GET", name))
	return k, err
}
