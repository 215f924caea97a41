// Package redlockcertmagic has CertMagic's instances, for example those of Caddy, coordinate
// with locks of redlock, whatever storage they share:
//
//	certmagic.Default.Storage = redlockcertmagic.New(storage, client)
//
// All instances must lock in the same way.
package redlockcertmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/caddyserver/certmagic"

	"github.com/quorumlock/quorumlock/redlock"
)

// Storage is a certmagic.Storage with locks of redlock. It is also a certmagic.TryLocker. It
// needs no certmagic.LockLeaseRenewer, because leases are renewed until Unlock. It is safe for
// concurrent use.
type Storage struct {
	certmagic.Storage // for all but locks
	client            *redlock.Client
	options           []redlock.MutexOption

	mu     sync.Mutex
	leases map[string]*redlock.Lease // by the name of the lock
}

var (
	_ certmagic.Storage   = (*Storage)(nil)
	_ certmagic.TryLocker = (*Storage)(nil)
)

// New returns storage with locks of client. Names of locks are CertMagic's, such as
// "issue_cert_example.com": give the client a prefix (redlock.WithKeyPrefix) where others use its masters.
//
// CertMagic does not hear of a lock that is lost while it works, and is made to tolerate that: two
// instances may then ask for the same certificate, as with its own storage.
func New(storage certmagic.Storage, client *redlock.Client, options ...redlock.MutexOption) *Storage {
	return &Storage{Storage: storage, client: client, options: options, leases: make(map[string]*redlock.Lease)}
}

// Lock waits for the lock of that name until ctx ends.
func (s *Storage) Lock(ctx context.Context, name string) error {
	lease, err := s.client.Mutex(name, s.options...).Lock(ctx)
	if err != nil {
		return err
	}
	return s.keep(ctx, name, lease)
}

// TryLock makes one attempt, and reports whether it got the lock. No error says that it is
// taken.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := s.client.Mutex(name, s.options...).TryLock(ctx)
	switch {
	case errors.Is(err, redlock.ErrTaken):
		return false, nil
	case err != nil:
		return false, err
	}
	err = s.keep(ctx, name, lease)
	return err == nil, err
}

// keep stores the lease for Unlock. It refuses a second one of that name: the first is lost,
// and its holder has not come to Unlock, which would end the second.
func (s *Storage) keep(ctx context.Context, name string, lease *redlock.Lease) error {
	s.mu.Lock()
	_, taken := s.leases[name]
	if !taken {
		s.leases[name] = lease
	}
	s.mu.Unlock()
	if taken {
		return errors.Join(fmt.Errorf("redlockcertmagic: lock %q: %w: lost by this process, which has not unlocked it yet",
			name, redlock.ErrTaken), lease.Unlock(ctx))
	}
	return nil
}

// Unlock releases the lock of that name. It returns redlock.ErrNotHeld if this Storage has not
// locked it. A lock that was lost or has expired is released: Unlock then returns nil.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	lease := s.leases[name]
	delete(s.leases, name)
	s.mu.Unlock()
	if lease == nil {
		return fmt.Errorf("redlockcertmagic: unlock %q: %w", name, redlock.ErrNotHeld)
	}
	err := lease.Unlock(ctx)
	if errors.Is(err, redlock.ErrLost) || errors.Is(err, redlock.ErrExpired) {
		return nil
	}
	return err
}
