package cli

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

func asksCommand(t *testing.T, ctx context.Context, command string) (password string, expires time.Time, failure string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Fatal("these commands are of a Unix shell")
	}
	m := Masters{user: "ann", passwordCommand: command}
	ask, err := m.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	c, err := ask(ctx, "10.0.0.1:6379")
	if err != nil {
		return "", time.Time{}, err.Error()
	}
	if c.User != "ann" {
		t.Errorf("user %q", c.User)
	}
	return c.Password, c.Expires, ""
}

func TestPassword_command_writes_the_password_and_when_it_expires(t *testing.T) {
	t.Parallel()
	until := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for command, want := range map[string]struct {
		password string
		expires  time.Time
	}{
		`echo hunter2`:         {"hunter2", time.Time{}},
		`printf hunter2`:       {"hunter2", time.Time{}},
		`printf 'two words\n'`: {"two words", time.Time{}},
		`printf 'hunter2\r\n2030-01-02T03:04:05Z\r\n'`:   {"hunter2", until},
		`printf 'hunter2\n2030-01-02T04:04:05+01:00\n'`:  {"hunter2", until},
		`sleep 100 & echo hunter2`:                       {"hunter2", time.Time{}}, // whose output stays open
		`echo complaint >&2; echo "for $REDLOCK_MASTER"`: {"for 10.0.0.1:6379", time.Time{}},
	} {
		password, expires, failure := asksCommand(t, context.Background(), command)
		if password != want.password || !expires.Equal(want.expires) || failure != "" {
			t.Errorf("%s: %q until %v, error %q; want %q until %v", command, password, expires, failure, want.password, want.expires)
		}
	}
}

// An error says what is wrong, and shows nothing of what may be the password.
func TestPassword_command_that_fails_says_why(t *testing.T) {
	t.Parallel()
	for command, why := range map[string]string{
		`echo hunter2; echo "no such role" >&2; exit 3`: "exit status 3: no such role",
		`yes | tr -d '\n' | head -c 9999 >&2; exit 3`:   "exit status 3: " + strings.Repeat("y", 300) + "...",
		`true`:                        "the first line of its output must be the password, and is empty",
		`printf '\nhunter2\n'`:        "the first line of its output must be the password, and is empty",
		`printf 'hunter2\nhunter2\n'`: "the second line of its output must be when the password expires, as 2006-01-02T15:04:05Z",
		`printf 'hunter2\n2030-01-02T03:04:05Z\nmore'`: "3 lines of output: must be one or two",
		`yes hunter2 | head -c 70000`:                  "more than 65536 bytes of output",
	} {
		_, _, failure := asksCommand(t, context.Background(), command)
		if !strings.Contains(failure, "--password-command: ") || !strings.Contains(failure, why) || strings.Contains(failure, "hunter2") {
			t.Errorf("%s: error %q, want %q", command, failure, why)
		}
	}
}

func TestPassword_command_that_hangs_is_ended(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, failure := asksCommand(t, ctx, "sleep 100 & echo hunter2; sleep 100") // and so has what it has started its output open
	if took := time.Since(began); !strings.Contains(failure, "deadline exceeded") || took > 50*time.Second {
		t.Errorf("error %q after %v", failure, took)
	}
}
