package redlock_test

import (
	"testing"
	"testing/synctest"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

func TestA_lease_prints_as_one_line(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := redlocktest.New(t)
		lease := lock(t, client.Mutex("name", redlock.Metadata("nightly")))
		if got, want := lease.String(), `lock "name" as `+lease.Value()+": valid for another 29.678s"; got != want {
			t.Errorf("while it is held: %s, want %s", got, want)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := lease.String(), `lock "name" as `+lease.Value()+": unlocked"; got != want {
			t.Errorf("afterwards: %s, want %s", got, want)
		}
	})
}
