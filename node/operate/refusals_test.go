package operate

import (
	"strings"
	"testing"

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
