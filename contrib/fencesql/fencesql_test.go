package fencesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/quorumlock/contrib/fencesql"
	"github.com/quorumlock/quorumlock/contrib/fencetest"
	"github.com/quorumlock/quorumlock/redlock"
)

var ctx = context.Background()

// site is a database with the fence, and a table of work.
type site struct {
	fencesql.Dialect
	db      *sql.DB
	level   sql.IsolationLevel
	written string // the statement that writes
}

// TestReal_fence runs what must hold on every database, at the isolation level that it has by
// default, and at others that it knows.
func TestReal_fence(t *testing.T) {
	for name, of := range map[string]struct {
		dialect fencesql.Dialect
		start   func(*testing.T) *sql.DB
		levels  []sql.IsolationLevel
		written string
	}{
		"postgres": {fencesql.Postgres, postgres, []sql.IsolationLevel{sql.LevelDefault}, `UPDATE work SET value = $1 WHERE name = $2`},
		"mariadb": {fencesql.MySQL, mariadb, []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted},
			`UPDATE work SET value = ? WHERE name = ?`},
		"sqlite": {fencesql.SQLite, sqlite, []sql.IsolationLevel{sql.LevelDefault}, `UPDATE work SET value = ? WHERE name = ?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := of.start(t)
			createdByMany(t, of.dialect, db)
			_, err := db.Exec(`CREATE TABLE work (name varchar(40) PRIMARY KEY, value varchar(40) NOT NULL)`)
			must(t, err)
			for _, level := range of.levels {
				s := site{of.dialect, db, level, of.written}
				t.Run(level.String(), func(t *testing.T) {
					t.Run("old_holders_are_refused_in_every_order", s.oldHoldersAreRefused)
					t.Run("many_holders_can_be_the_first", s.manyCanBeTheFirst)
					t.Run("what_is_rolled_back_does_not_count", s.rolledBackDoesNotCount)
					t.Run("names_are_told_apart_by_every_byte", s.namesAreToldApart)
				})
			}
			s := site{of.dialect, db, sql.LevelRepeatableRead, of.written}
			if name == "sqlite" {
				s.level = sql.LevelDefault // has nothing else
			}
			t.Run("an_old_snapshot_hides_no_newer_holder", s.oldSnapshotHidesNoNewerHolder)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s site) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
	must(t, err)
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

func (s site) oldHoldersAreRefused(t *testing.T) {
	opened := 0
	fencetest.Run(t, func() fencetest.Resource {
		opened++
		name := fmt.Sprintf("work %d, %v", opened, s.level)
		_, err := s.db.Exec(`INSERT INTO work VALUES ('` + name + `', 'nothing')`)
		must(t, err)
		return fencetest.Resource{
			Write: func(token uint64, value string, between func()) error { return s.write(name, token, value, between) },
			Read: func() (value string, err error) {
				return value, s.db.QueryRow(`SELECT value FROM work WHERE name = '` + name + `'`).Scan(&value)
			},
		}
	})
}

func (s site) write(name string, token uint64, value string, between func()) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := s.Check(ctx, tx, name, token); err != nil {
		return err
	}
	between()
	if _, err := tx.Exec(s.written, value, name); err != nil {
		return err
	}
	between()
	return tx.Commit()
}

func createdByMany(t *testing.T, dialect fencesql.Dialect, db *sql.DB) {
	t.Helper()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := dialect.Create(ctx, db); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Each of them inserts the row, or waits for another that does.
func (s site) manyCanBeTheFirst(t *testing.T) {
	const many = 8
	var all sync.WaitGroup
	failed := make([]error, many)
	for i := range many {
		all.Go(func() { failed[i] = s.write("contested", uint64(i+1), "", func() {}) })
	}
	all.Wait()
	for i, err := range failed {
		if err != nil && (i == many-1 || !errors.Is(err, redlock.ErrStale)) {
			t.Errorf("token %d: %v", i+1, err)
		}
	}
	err := s.write("contested", many-1, "", func() {})
	if !errors.Is(err, redlock.ErrStale) || !strings.Contains(err.Error(), "token 7, and 8 was seen") {
		t.Errorf("then the token before the last: %v", err)
	}
	_, err = s.db.Exec(`DELETE FROM redlock_fence WHERE resource = 'contested'`)
	must(t, err)
}

func (s site) rolledBackDoesNotCount(t *testing.T) {
	tx := s.begin(t)
	must(t, s.Check(ctx, tx, "rolled back", 5))
	must(t, tx.Rollback())
	tx = s.begin(t)
	must(t, s.Check(ctx, tx, "rolled back", 4))
	must(t, tx.Rollback())
}

func (s site) namesAreToldApart(t *testing.T) {
	tx := s.begin(t)
	long := strings.Repeat("x", fencesql.MaxResource-1)
	must(t, s.Check(ctx, tx, long+"A", math.MaxInt64))
	for _, other := range []string{long + "a", long, "é", "e"} {
		must(t, s.Check(ctx, tx, other, 1))
	}
	must(t, tx.Rollback())
}

// The old holder's transaction does not see what was committed after its first read. Its check
// must see it, or fail.
func (s site) oldSnapshotHidesNoNewerHolder(t *testing.T) {
	must(t, s.write("seen", 1, "", func() {}))
	old := s.begin(t)
	var rows int
	must(t, old.QueryRow(`SELECT count(*) FROM redlock_fence`).Scan(&rows))

	must(t, s.write("seen", 2, "", func() {}))

	if err := s.Check(ctx, old, "seen", 1); err == nil {
		t.Error("the old holder is accepted")
	}
}

func TestCheck_refuses_bad_input_before_anything_is_sent(t *testing.T) {
	for _, c := range []struct {
		dialect  fencesql.Dialect
		resource string
		token    uint64
		want     string
		stale    bool
	}{
		{fencesql.Dialect{}, "orders", 1, "want Postgres, MySQL or SQLite", false},
		{fencesql.SQLite, "", 1, "resource of 0 bytes, want 1 to 255", false},
		{fencesql.SQLite, strings.Repeat("x", 256), 1, "resource of 256 bytes, want 1 to 255", false},
		{fencesql.SQLite, "orders", 0, `"orders": stale fencing token: 0 is no token`, true},
		{fencesql.SQLite, "orders", math.MaxInt64 + 1, "token 9223372036854775808, want at most 9223372036854775807", false},
	} {
		err := c.dialect.Check(ctx, nil, c.resource, c.token)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, redlock.ErrStale) != c.stale {
			t.Errorf("Check says %v, want %q", err, c.want)
		}
	}
}
