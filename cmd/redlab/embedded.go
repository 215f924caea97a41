package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// embedded is a master inside this process, on a loopback port that it keeps while it
// is down. Its memory outlives a kill, as that of a master that syncs every write
// does; its keys expire as time passes, whether it runs or not.
type embedded struct {
	server *miniredis.Miniredis
	port   *loopback.Port
}

func startEmbedded(n int) (all []*embedded, err error) {
	for range n {
		e := &embedded{server: miniredis.NewMiniRedis()}
		if e.port, err = loopback.Reserve(); err == nil {
			e.server.ClockTTL(true)
			all = append(all, e)
			err = e.restart()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start an embedded master: %w", err), stopEmbedded(all))
		}
	}
	return all, nil
}

func stopEmbedded(all []*embedded) error {
	var errs []error
	for _, e := range all {
		e.kill()
		errs = append(errs, e.port.Close())
	}
	return errors.Join(errs...)
}

func (e *embedded) addr() string { return e.port.Addr() }

func (e *embedded) kill() { e.server.Close() }

func (e *embedded) restart() error { return e.server.StartAddr(e.port.Addr()) }

// remembers returns the value of key and its TTL, also of a master that is down.
func (e *embedded) remembers(key string) (value string, ttl time.Duration) {
	value, err := e.server.Get(key)
	if err != nil {
		return "", 0
	}
	return value, e.server.TTL(key)
}
