package node

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// S50: a server that was a replica in between hands a lock on by the keys of another server.
// Its messages do not show the marker that came with these keys, so that no waiter believes
// them.
func TestReal_S50_a_master_that_was_a_replica_in_between_hands_on_without_its_marker(t *testing.T) {
	t.Parallel()
	s, other := redistest.Start(t), redistest.Start(t)
	do(t, s, "SET", wire.MarkerKey(""), "run 1 2 -")
	handedOnWith := func(marker string) {
		t.Helper()
		const waiter = "c/nnnnnnnnnnnnnnnn/waiter:0"
		runOn(t, s, wire.Acquire("k", "holder", time.Minute))
		runOn(t, s, askFor(waiter, 10))
		ear, err := s.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer ear.Close()
		if _, err := ear.Do("SUBSCRIBE", wire.WaitChannel("", "c/nnnnnnnnnnnnnnnn")); err != nil {
			t.Fatal(err)
		}
		runOn(t, s, giveBack("holder"))
		message, err := redis.Strings(ear.Receive())
		if err != nil {
			t.Fatal(err)
		}
		proof, _, _ := strings.Cut(message[2], "\n")
		if got, _ := wire.ParseProof(proof); got != marker {
			t.Errorf("the message shows the marker %q, want %q", got, marker)
		}
		runOn(t, s, giveBack(waiter))
	}
	handedOnWith("run 1 2 -")

	replicate(t, other, s)
	replicate(t, s, other)
	handedOnWith("")
}

// replicate gives a server the keys of another one, and makes it a master again.
func replicate(t *testing.T, s, of *redistest.Server) {
	t.Helper()
	_, port, _ := strings.Cut(of.Addr(), ":")
	do(t, s, "REPLICAOF", "127.0.0.1", port)
	eventually(t, "the replica has its master's keys", func() bool {
		info, err := redis.String(s.Do("INFO", "replication"))
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	do(t, s, "REPLICAOF", "NO", "ONE")
}
