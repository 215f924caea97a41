package cli

import (
	"errors"
	"testing"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

func TestA_refused_option_is_named_by_its_flag(t *testing.T) {
	for text, want := range map[string]string{
		`redlock: WithTTL(0s): must be at least 10ms`:                                      `--guard 0s: must be at least 10ms`,
		`redlock: TTL(1m0s): must be at most the restart guard 30s (see WithRestartGuard)`: `--ttl 1m0s: must be at most the restart guard 30s (see --restart-guard)`,
		`redlock: Metadata("a) (TTL(5s): \xff"): must be UTF-8`:                            `--metadata "a) (TTL(5s): \xff": must be UTF-8`,
		`redlock: Metadata: 1025 bytes: must be at most 1024`:                              `--metadata: 1025 bytes: must be at most 1024`,
		`simulate: Nodes(-1): must be from 1 to 26`:                                        `--nodes -1: must be from 1 to 26`,
		`redlock: lock name "WithTTL(0s)": must not`:                                       `redlock: lock name "WithTTL(0s)": must not`,
		`redlock: WithDriftFactor(2): must be`:                                             `redlock: WithDriftFactor(2): must be`, // no flag sets it
	} {
		if got := inFlags(text, map[string]string{"WithTTL": "guard"}); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
}

// The line for each master is made of the errors in it.
func TestA_refusal_of_addresses_keeps_what_is_wrong_with_each(t *testing.T) {
	if err := Refusal(&wire.Error{Node: "a:1", Err: guard.ErrSameNode}, nil); !errors.Is(err, guard.ErrSameNode) || CodeOf(err) != ExitUsage {
		t.Errorf("it is %#v, with exit code %d", err, CodeOf(err))
	}
}
