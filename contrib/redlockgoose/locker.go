// Package redlockgoose has several processes that start together migrate their database one
// after the other, with a lock of redlock: for databases in which goose has no lock of its own,
// and for those behind a pooler that hides sessions.
//
//	goose.NewProvider(dialect, db, migrations, goose.WithLocker(redlockgoose.New(client.Mutex("migrate"))))
//
// goose does not end a migration whose lock is lost; its error says so afterwards. To have the
// migration's context end with the lock, leave this package out:
//
//	redlock.Do(ctx, client.Mutex("migrate"), func(ctx context.Context) error {
//		_, err := provider.Up(ctx)
//		return err
//	})
package redlockgoose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/pressly/goose/v3/lock"

	"github.com/quorumlock/quorumlock/redlock"
)

// Locker is a lock.Locker and a lock.SessionLocker of goose. It is safe for concurrent use.
type Locker struct {
	locker redlock.Locker

	mu     sync.Mutex
	leases map[any]*redlock.Lease // by the *sql.DB or *sql.Conn that it was locked with
}

var (
	_ lock.Locker        = (*Locker)(nil)
	_ lock.SessionLocker = (*Locker)(nil)
)

// New returns a locker for goose.WithLocker, or for goose.WithSessionLocker where goose is older
// than that. All processes must use a lock of the same name, which belongs to one database.
func New(locker redlock.Locker) *Locker {
	return &Locker{locker: locker, leases: make(map[any]*redlock.Lease)}
}

// Lock waits for the lock until ctx ends. The database is not used.
func (l *Locker) Lock(ctx context.Context, db *sql.DB) error { return l.take(ctx, db) }

// Unlock releases the lock. It returns redlock.ErrLost or redlock.ErrExpired if it had ended
// before.
func (l *Locker) Unlock(ctx context.Context, db *sql.DB) error { return l.release(ctx, db) }

// SessionLock is Lock.
func (l *Locker) SessionLock(ctx context.Context, conn *sql.Conn) error { return l.take(ctx, conn) }

// SessionUnlock is Unlock.
func (l *Locker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return l.release(ctx, conn)
}

func (l *Locker) take(ctx context.Context, by any) error {
	lease, err := l.locker.Lock(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	_, taken := l.leases[by]
	if !taken {
		l.leases[by] = lease
	}
	l.mu.Unlock()
	if taken { // and lost: its holder has not come to Unlock, which would end ours
		return errors.Join(fmt.Errorf("redlockgoose: lock %q: %w: lost by this process, which has not unlocked it yet",
			lease.Name(), redlock.ErrTaken), lease.Unlock(ctx))
	}
	return nil
}

func (l *Locker) release(ctx context.Context, by any) error {
	l.mu.Lock()
	lease := l.leases[by]
	delete(l.leases, by)
	l.mu.Unlock()
	if lease == nil {
		return fmt.Errorf("redlockgoose: unlock: %w", redlock.ErrNotHeld)
	}
	return lease.Unlock(ctx)
}
