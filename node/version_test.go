package node

import (
	"errors"
	"strings"
	"testing"
)

func TestServers_that_are_too_old_are_refused_by_name(t *testing.T) {
	for _, c := range []struct{ info, says string }{
		{"redis_version:5.0.14", "it runs Redis 5.0.14, and Redis 6.2 or later is needed"},
		{"redis_version:6.0.20", "it runs Redis 6.0.20"},
		{"redis_version:7.0.15\r\nvalkey_version:7.1.0", "it runs Valkey 7.1.0, and Valkey 7.2 or later is needed"},
		{"redis_version:2.8.2402", "Redis 2.8.2402"},
		{"redis_version:6.2.0", ""},
		{"redis_version:6.10.1", ""},
		{"redis_version:7.0.15", ""},
		{"redis_version:10.0.0", ""},
		{"redis_version:255.255.255", ""},
		{"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1", ""},
		{"redis_version:6.0.0\r\nvalkey_version:7.2.7", ""}, // the first is for clients of Redis
		{"redis_version:unstable", ""},
		{"redis_version:", ""},
		{"uptime_in_seconds:5", ""},
	} {
		err := tooOld("# Server\r\n" + c.info + "\r\nredis_mode:standalone\r\n")
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%q: %v", c.info, err)
		case c.says != "" && (!errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q: %v, want %s", c.info, err, c.says)
		}
	}
	if err := tooOld(""); err != nil {
		t.Errorf("a server that hides its version: %v", err)
	}
}

func TestMaster_that_is_too_old_says_so_at_Dial_and_is_not_marked(t *testing.T) {
	s := newStub(t, func(args []string) string {
		if args[0] == "INFO" {
			return bulk("# Server\r\nredis_version:6.0.20\r\nrun_id:old\r\n")
		}
		return "default"
	})
	before := s.marker
	err := firstAttempt(t, open(t, s.addr(), Config{}))
	if !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "Redis 6.0.20") {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marker != before {
		t.Errorf("it was marked: %q", s.marker)
	}
}
