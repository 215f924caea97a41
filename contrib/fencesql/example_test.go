package fencesql_test

import (
	"context"
	"database/sql"

	"github.com/quorumlock/quorumlock/contrib/fencesql"
	"github.com/quorumlock/quorumlock/redlock"
)

func Example() {
	var (
		client *redlock.Client
		db     *sql.DB
	)
	lease, err := client.Mutex("invoices", redlock.Fenced()).Lock(context.Background())
	if err != nil {
		return
	}
	defer lease.Unlock(context.Background())
	if err := pay(lease.Context(), db, lease.Token()); err != nil {
		return // errors.Is(err, redlock.ErrStale): a newer holder was here
	}
}

func pay(ctx context.Context, db *sql.DB, token uint64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fencesql.Postgres.Check(ctx, tx, "invoices", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE invoices SET paid = true WHERE due < now()`); err != nil {
		return err
	}
	return tx.Commit()
}
