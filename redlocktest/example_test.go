package redlocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// report is the code to be tested: it writes for as long as it has the lock.
func report(ctx context.Context, client *redlock.Client, write func()) error {
	return redlock.Do(ctx, client.Mutex("nightly-report"), func(ctx context.Context) error {
		for range 60 {
			write()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

// testReportStops is what TestReportStops would be in a test file of yours. The
// clock of the bubble makes its minute pass at once.
func testReportStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t)
		written := 0
		err := report(t.Context(), client, func() {
			if written++; written == 20 {
				masters.LoseQuorum()
			}
		})
		if !errors.Is(err, redlock.ErrExpired) || written == 60 {
			t.Errorf("it wrote %d times and ended with %v", written, err)
		}
	})
}

// A test of code that must stop when it loses its lock: go test runs it.
func ExampleNew() {
	_ = []testing.InternalTest{{Name: "TestReportStops", F: testReportStops}}
}
