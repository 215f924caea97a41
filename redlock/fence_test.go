package redlock_test

import (
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
)

func TestS7_a_fence_refuses_the_token_of_a_holder_that_was_overtaken(t *testing.T) {
	var f redlock.Fence
	for _, step := range []struct {
		resource string
		token    uint64
		want     error
	}{
		{"disk", 0, redlock.ErrStale}, // no token
		{"disk", 33, nil},
		{"disk", 33, nil}, // the same holder goes on
		{"disk", 34, nil},
		{"disk", 33, redlock.ErrStale},
		{"tape", 5, nil}, // another resource
	} {
		mustBe(t, f.Check(step.resource, step.token), step.want)
	}
	mustName(t, f.Check("disk", 0), []string{`fence "disk"`, "0 is no token"})
}
