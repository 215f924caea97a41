// Package fencesql has a database refuse the writes of old lock holders: a table with the
// highest fencing token of each resource, which is checked and raised in the transaction that
// writes.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	defer tx.Rollback()
//	if err := fencesql.Postgres.Check(ctx, tx, "invoices", lease.Token()); err != nil {
//		return err // errors.Is(err, redlock.ErrStale): a newer holder was here
//	}
//	... // read and write invoices
//	return tx.Commit()
//
// Every writer of the resource must do so. Check comes first in the transaction: data that was
// read before it may have been written since by an earlier holder.
package fencesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/quorumlock/quorumlock/redlock"
)

// MaxResource is how long the name of a resource may be, in bytes.
const MaxResource = 255

// Dialect is a kind of database. It is Postgres, MySQL or SQLite.
type Dialect struct {
	name   string
	create string
	raise  string // raises the token, and locks the row until the end of the transaction
	read   string // returns the token, where raise does not
}

// Invariant: raise leaves the row locked, so that between a check and the commit of its
// transaction no other check of the resource returns. That holds for a first use, too, whose
// row is inserted: another insert waits for the transaction that inserted it. One statement
// does both, since a row that is not there cannot be locked.
//
// A raise that changes nothing still locks. So it need not tell the cases apart: it stores the
// higher token, which says whether ours was it.
var (
	// Postgres is PostgreSQL, and what speaks its SQL.
	Postgres = Dialect{
		name:   "postgres",
		create: `CREATE TABLE IF NOT EXISTS redlock_fence (resource text PRIMARY KEY, token bigint NOT NULL)`,
		raise: `INSERT INTO redlock_fence AS fence (resource, token) VALUES ($1, $2)
			ON CONFLICT (resource) DO UPDATE SET token = GREATEST(fence.token, EXCLUDED.token) RETURNING token`,
	}

	// MySQL is MySQL 5.7 or later, or MariaDB.
	//
	// ON DUPLICATE KEY UPDATE locks the row for writing immediately. INSERT IGNORE would lock it
	// for reading, and two of them would wait for each other when they update it. The second
	// statement locks again, since without that it reads the transaction's snapshot.
	// A name is bytes, because letters of another case are the same to most collations.
	MySQL = Dialect{
		name: "mysql",
		create: `CREATE TABLE IF NOT EXISTS redlock_fence (resource varbinary(255) PRIMARY KEY, token bigint NOT NULL)
			ENGINE = InnoDB`,
		raise: `INSERT INTO redlock_fence (resource, token) VALUES (?, ?)
			ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)`,
		read: `SELECT token FROM redlock_fence WHERE resource = ? FOR UPDATE`,
	}

	// SQLite is SQLite 3.35 or later. It locks the whole database for writing.
	SQLite = Dialect{
		name:   "sqlite",
		create: `CREATE TABLE IF NOT EXISTS redlock_fence (resource text PRIMARY KEY, token integer NOT NULL)`,
		raise: `INSERT INTO redlock_fence (resource, token) VALUES (?, ?)
			ON CONFLICT (resource) DO UPDATE SET token = MAX(token, excluded.token) RETURNING token`,
	}
)

// Schema returns the statement that creates the table redlock_fence, if it does not exist.
func (d Dialect) Schema() string { return d.create }

// Create creates the table redlock_fence, if it does not exist. Several processes may call it
// at the same time.
func (d Dialect) Create(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, d.create)
	if err != nil && ctx.Err() == nil {
		// In Postgres, IF NOT EXISTS fails where another creates the table at the same time.
		_, err = db.ExecContext(ctx, d.create)
	}
	if err != nil {
		return fmt.Errorf("fencesql: create redlock_fence in %s: %w", d.name, err)
	}
	return nil
}

// Check accepts a token that is at least as high as every token that was committed for the
// resource before, and otherwise returns an error that is redlock.ErrStale. Zero, which
// stands for a lock that is not fenced, is stale. The resource is a name of 1 to MaxResource
// bytes, of UTF-8 in Postgres; the token is at most math.MaxInt64.
//
// Until the transaction ends, other calls for the resource wait. After any error, roll back.
// Errors of the database come through: at isolation levels above READ COMMITTED Postgres
// reports a serialization failure where another holder committed meanwhile, InnoDB may report
// a deadlock where several transactions use a resource for the first time and one of them is
// rolled back, and SQLite is busy. Such a transaction has changed nothing, and can be begun
// again.
func (d Dialect) Check(ctx context.Context, tx *sql.Tx, resource string, token uint64) error {
	fail := func(err error) error { return fmt.Errorf("fencesql: check %q: %w", resource, err) }
	switch {
	case d.raise == "":
		return fail(errors.New("no dialect, want Postgres, MySQL or SQLite"))
	case resource == "" || len(resource) > MaxResource:
		return fail(fmt.Errorf("resource of %d bytes, want 1 to %d", len(resource), MaxResource))
	case token == 0:
		return fail(fmt.Errorf("%w: 0 is no token", redlock.ErrStale))
	case token > math.MaxInt64:
		return fail(fmt.Errorf("token %d, want at most %d", token, math.MaxInt64))
	}
	highest, err := d.raised(ctx, tx, resource, int64(token))
	if err != nil {
		return fail(err)
	}
	if highest > int64(token) {
		return fail(fmt.Errorf("%w: token %d, and %d was seen", redlock.ErrStale, token, highest))
	}
	return nil
}

// raised returns the highest token, and has locked it.
func (d Dialect) raised(ctx context.Context, tx *sql.Tx, resource string, token int64) (highest int64, err error) {
	if d.read == "" {
		return highest, tx.QueryRowContext(ctx, d.raise, resource, token).Scan(&highest)
	}
	if _, err := tx.ExecContext(ctx, d.raise, resource, token, token); err != nil {
		return 0, err
	}
	return highest, tx.QueryRowContext(ctx, d.read, resource).Scan(&highest)
}
