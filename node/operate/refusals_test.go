package operate

import (
	"context"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// A user who may not ask for TYPE or PTTL cannot tell whether a key is a lock (docs/permissions.md: init refuses).
func TestInit_refuses_where_it_cannot_tell_whether_a_key_is_a_lock(t *testing.T) {
	for _, name := range []string{"TYPE", "PTTL"} {
		s, _ := someMasters(t, 3, func(all []*fake) {
			all[1].keys["orders"], all[1].ttl["orders"] = "x", 1000
			all[1].refuses = func(cmd *wire.Command) string {
				if cmd.Name == name {
					return "NOPERM this user has no permissions to run the '" + strings.ToLower(name) + "' command"
				}
				return ""
			}
		})
		if err := s.initialize(); err == nil {
			t.Errorf("%s is refused: masters of which one has a lock are declared new", name)
		}
	}
}

func TestSpread_refuses_to_move_names_without_a_guard(t *testing.T) {
	masters := map[string][]string{"a": {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}}
	_, err := Spread(context.Background(), masters, []string{"a"}, node.Config{})
	if err == nil || !strings.Contains(err.Error(), "Guard.Hold 0s: must be") {
		t.Errorf("Spread: %v", err)
	}
	if _, err := PlanSpread(context.Background(), masters, []string{"a"}, node.Config{}); err == nil {
		t.Error("PlanSpread says nothing of it")
	}
}
