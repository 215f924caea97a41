package fencetest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/quorumlock/contrib/fencetest"
)

// report takes what Run finds.
type report struct {
	testing.TB
	found []string
}

func (*report) Helper()            {}
func (r *report) Error(all ...any) { r.found = append(r.found, fmt.Sprint(all...)) }

func find(open func() fencetest.Resource) string {
	var r report
	fencetest.RunPatiently(&r, open)
	return strings.Join(r.found, "\n")
}

// store is a resource whose steps can be taken out, or made wrong. The zero value is right.
type store struct {
	mu      sync.Mutex
	highest uint64
	value   string
}

var errOld = errors.New("too old")

func (s *store) read() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, nil
}

// in is a write in one step, whose check is that of refuse.
func (s *store) in(refuse func(token uint64) bool) func(uint64, string, func()) error {
	return func(token uint64, value string, _ func()) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if refuse(token) {
			return errOld
		}
		s.highest, s.value = token, value
		return nil
	}
}

func (s *store) old(token uint64) bool { return token == 0 || token < s.highest }

func TestRun_passes_what_checks_and_writes_in_one_step(t *testing.T) {
	fencetest.Run(t, func() fencetest.Resource {
		var s store
		return fencetest.Resource{Write: s.in(s.old), Read: s.read}
	})
}

func TestRun_passes_steps_at_which_the_others_wait(t *testing.T) {
	t.Parallel()
	fencetest.Run(t, func() fencetest.Resource {
		var f file
		return fencetest.Resource{Write: f.write, Read: f.read}
	})
}

func TestRun_finds_every_way_to_get_it_wrong(t *testing.T) {
	for name, wrong := range map[string]struct {
		write func(s *store) func(uint64, string, func()) error
		want  string
	}{
		"no check": {func(s *store) func(uint64, string, func()) error {
			return s.in(func(token uint64) bool { return token == 0 })
		}, "write 4 is accepted, and a newer holder wrote before it"},
		"text": {func(s *store) func(uint64, string, func()) error {
			return s.in(func(token uint64) bool {
				return token == 0 || s.highest > 0 && fmt.Sprint(token) < fmt.Sprint(s.highest)
			})
		}, "tokens 9, 9, 9, 10, 10, 10: write 4 is refused"},
		"floating point": {func(s *store) func(uint64, string, func()) error {
			return s.in(func(token uint64) bool { return token == 0 || float64(token) < float64(s.highest) })
		}, "write 4 is accepted"},
		"one write a holder": {func(s *store) func(uint64, string, func()) error {
			return s.in(func(token uint64) bool { return token <= s.highest })
		}, "write 2 is refused"},
		"no token is a token": {func(s *store) func(uint64, string, func()) error {
			return s.in(func(token uint64) bool { return token < s.highest })
		}, "token 0, first of all, is accepted"},
		"nothing is accepted": {func(s *store) func(uint64, string, func()) error {
			return s.in(func(token uint64) bool { return true })
		}, "write 1 is refused"},
		"refuses and writes": {func(s *store) func(uint64, string, func()) error {
			return func(token uint64, value string, _ func()) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.value = value
				if s.old(token) {
					return errOld
				}
				s.highest = token
				return nil
			}
		}, `"write 4" is read, want "write 3"`},
		"accepts and does not write": {func(s *store) func(uint64, string, func()) error {
			return func(token uint64, value string, _ func()) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.old(token) {
					return errOld
				}
				s.highest = token
				return nil
			}
		}, `"" is read, want "write 1"`},
		"checks, then writes": {func(s *store) func(uint64, string, func()) error {
			return func(token uint64, value string, between func()) error {
				s.mu.Lock()
				if s.old(token) {
					s.mu.Unlock()
					return errOld
				}
				s.highest = token
				s.mu.Unlock()
				between()
				s.mu.Lock()
				defer s.mu.Unlock()
				s.value = value
				return nil
			}
		}, `on a new resource, with tokens 2, 3, 3, 2: "old" is read, want "new"`},
		"writes, then remembers": {func(s *store) func(uint64, string, func()) error {
			return func(token uint64, value string, between func()) error {
				s.mu.Lock()
				if s.old(token) {
					s.mu.Unlock()
					return errOld
				}
				s.value = value
				s.mu.Unlock()
				between()
				s.mu.Lock()
				defer s.mu.Unlock()
				s.highest = token
				return nil
			}
		}, "the older holder's next write is accepted"},
		"the first use is two steps": {func(s *store) func(uint64, string, func()) error {
			locked := s.in(s.old)
			return func(token uint64, value string, between func()) error {
				s.mu.Lock()
				first := s.highest == 0
				s.mu.Unlock()
				if !first || token == 0 {
					return locked(token, value, between)
				}
				between()
				s.mu.Lock()
				defer s.mu.Unlock()
				s.highest, s.value = token, value
				return nil
			}
		}, `on a new resource, with tokens 2, 3, 3, 2: "old" is read`},
		"many points": {func(s *store) func(uint64, string, func()) error {
			return func(token uint64, value string, between func()) error {
				for range 6 {
					between()
				}
				return s.in(s.old)(token, value, func() {})
			}
		}, "6 points, want at most 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := find(func() fencetest.Resource {
				s := new(store)
				return fencetest.Resource{Write: wrong.write(s), Read: s.read}
			})
			if !strings.Contains(found, wrong.want) {
				t.Errorf("Run found:\n%s\nwant %q", found, wrong.want)
			}
		})
	}
}
