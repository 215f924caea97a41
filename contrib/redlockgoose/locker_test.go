package redlockgoose_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/quorumlock/quorumlock/contrib/redlockgoose"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

var migrations = fstest.MapFS{
	"00001_orders.sql":   {Data: []byte("-- +goose Up\nCREATE TABLE orders (id integer);\n")},
	"00002_invoices.sql": {Data: []byte("-- +goose Up\nCREATE TABLE invoices (id integer);\n")},
}

// ways are how a provider is given the lock.
var ways = map[string]func(*redlockgoose.Locker) goose.ProviderOption{
	"WithLocker":        func(l *redlockgoose.Locker) goose.ProviderOption { return goose.WithLocker(l) },
	"WithSessionLocker": func(l *redlockgoose.Locker) goose.ProviderOption { return goose.WithSessionLocker(l) },
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// provider is goose as one process has it.
func provider(t *testing.T, path string, options ...goose.ProviderOption) *goose.Provider {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(30000)")
	must(t, err)
	t.Cleanup(func() { db.Close() })
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, options...)
	must(t, err)
	return p
}

func TestLocker_has_one_of_many_processes_migrate(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			_, masters := redlocktest.New(t)
			path := t.TempDir() + "/db"
			var (
				all  sync.WaitGroup
				mu   sync.Mutex
				done int
			)
			for range 5 {
				p := provider(t, path, way(redlockgoose.New(masters.Client().Mutex("migrate"))))
				all.Go(func() {
					results, err := p.Up(t.Context())
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					done += len(results)
				})
			}
			all.Wait()
			if done != len(migrations) {
				t.Errorf("five processes ran %d migrations, want %d", done, len(migrations))
			}
		})
	}
}

func TestLocker_migrates_nothing_while_another_has_the_lock(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			client, masters := redlocktest.New(t)
			lease, err := client.Mutex("migrate").Lock(t.Context())
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waiter := masters.Client(redlock.WithObserver(func(e redlock.Event) {
				if e.Kind == redlock.LockWaiting {
					cancel()
				}
			}))
			p := provider(t, t.TempDir()+"/db", way(redlockgoose.New(waiter.Mutex("migrate"))))

			if results, err := p.Up(ctx); len(results) > 0 || !errors.Is(err, redlock.ErrTaken) {
				t.Errorf("%d migrations, %v", len(results), err)
			}

			must(t, lease.Unlock(t.Context()))
			if results, err := p.Up(t.Context()); len(results) != len(migrations) || err != nil {
				t.Errorf("then %d migrations, %v", len(results), err)
			}
		})
	}
}

func TestLocker_says_that_the_lock_was_lost(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			client, masters := redlocktest.New(t)
			p := provider(t, t.TempDir()+"/db", way(redlockgoose.New(client.Mutex("migrate"))),
				goose.WithGoMigrations(goose.NewGoMigration(3, &goose.GoFunc{RunTx: func(context.Context, *sql.Tx) error {
					masters.Expire("migrate")
					return nil
				}}, nil)))

			if _, err := p.Up(t.Context()); !errors.Is(err, redlock.ErrLost) {
				t.Errorf("Up returned %v", err)
			}
		})
	}
}

func TestLocker_does_not_let_the_holder_of_a_lost_lock_unlock_another(t *testing.T) {
	client, masters := redlocktest.New(t)
	l, db := redlockgoose.New(client.Mutex("migrate")), new(sql.DB)
	must(t, l.Lock(t.Context(), db))
	masters.Expire("migrate")

	if err := l.Lock(t.Context(), db); !errors.Is(err, redlock.ErrTaken) {
		t.Errorf("the lock is lost and not unlocked, and is locked again: %v", err)
	}

	if err := l.Unlock(t.Context(), db); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("Unlock of the lost lock: %v", err)
	}
	if err := l.Unlock(t.Context(), db); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("Unlock without Lock: %v", err)
	}
	must(t, l.Lock(t.Context(), db))
	must(t, l.Unlock(t.Context(), db))
}

func Example() {
	var (
		client *redlock.Client
		db     *sql.DB
	)
	provider, err := goose.NewProvider(goose.DialectMySQL, db, migrations,
		goose.WithLocker(redlockgoose.New(client.Mutex("migrate"))))
	if err != nil {
		return
	}
	provider.Up(context.Background())
}
