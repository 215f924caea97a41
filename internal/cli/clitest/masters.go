package clitest

import (
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Set stores a lock on some masters.
func Set(t *testing.T, masters []*redistest.Server, key, value string, args ...any) {
	t.Helper()
	for _, s := range masters {
		if _, err := s.Do("SET", append([]any{key, value}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
}

// Holders returns what each master stores under the name.
func Holders(t *testing.T, masters []*redistest.Server, name string) []string {
	t.Helper()
	values := make([]string, len(masters))
	for i, s := range masters {
		reply, err := s.Do("GET", name)
		if err != nil {
			t.Fatalf("GET at %s: %v", s.Addr(), err)
		}
		if reply != nil {
			values[i] = string(reply.([]byte))
		}
	}
	return values
}

func WantFree(t *testing.T, masters []*redistest.Server, name string) {
	t.Helper()
	for i, v := range Holders(t, masters, name) {
		if v != "" {
			t.Errorf("master %d still has %q", i, v)
		}
	}
}
