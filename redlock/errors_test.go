package redlock_test

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// Whoever reads that five of five granted looks for a lock that nobody has.
func TestAn_error_of_a_question_does_not_say_that_a_master_granted(t *testing.T) {
	client, masters := redlocktest.New(t)
	_, noLeader := client.Election("scheduler").Leader(ctx)
	masters.LoseQuorum()
	_, noAnswer := client.Inspect(ctx, "orders")
	_, noCount := client.Latch("start", 2).Count(ctx)
	for text, err := range map[string]error{
		`leader "scheduler": no leader (5 of 5 answered, 3 needed: `: noLeader,
		`inspect "orders": no quorum (2 of 5 answered, 3 needed: `:   noAnswer,
		`count "start": no quorum (2 of 5 answered, 3 needed: `:      noCount,
	} {
		mustName(t, err, []string{text})
		if err != nil && strings.Contains(err.Error(), "granted") {
			t.Errorf("it says that a master granted: %v", err)
		}
	}

	_, err := client.Mutex("orders").TryLock(ctx)

	mustName(t, err, []string{`lock "orders": no quorum (`, "of 5 granted, 3 needed: "})
	mustBe(t, err, redlock.ErrNoQuorum)
}
