package wire

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestServerError_is_classified_by_its_first_word(t *testing.T) {
	for _, c := range []struct {
		reply      string
		code       string
		refuses    bool
		unwritable bool
	}{
		{"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT", false, false},
		{"LOADING Redis is loading the dataset in memory", "LOADING", true, false},
		{"READONLY You can't write against a read only replica.", "READONLY", true, false},
		{"MISCONF Redis is configured to save RDB snapshots", "MISCONF", true, true},
		{"OOM command not allowed when used memory > 'maxmemory'.", "OOM", true, true},
		{"BUSY Redis is busy running a script.", "BUSY", true, false},
		{"NOREPLICAS Not enough good replicas to write.", "NOREPLICAS", true, true},
		{"MASTERDOWN Link with MASTER is down", "MASTERDOWN", true, false},
		{"NOAUTH Authentication required.", "NOAUTH", true, false},
		{"NOPERM this user has no permissions", "NOPERM", true, false},
		{"NOPERM User ann has no permissions to run the 'set' command", "NOPERM", true, true},
		{"NOPERM No permissions to access a key", "NOPERM", true, false},
		{"WRONGPASS invalid username-password pair", "WRONGPASS", false, false},
		{"WRONGTYPE Operation against a key", "WRONGTYPE", false, false},
		{"ERR unknown command", "ERR", false, false},
		{"ERR Error running script (call to f_1be0): @user_script:10: @user_script: 10: -READONLY You can't write against a read only replica.", "READONLY", true, false},
		{"ERR Error running script (call to f_1be0): @user_script:10: @user_script: 10: Wrong number of args", "ERR", false, false},
		{"", "", false, false},
	} {
		e := Server(c.reply)
		if e.Code != c.code || e.Refuses() != c.refuses || e.Unwritable() != c.unwritable || e.Error() != c.reply {
			t.Errorf("%q: code %q, refuses %v, unwritable %v", c.reply, e.Code, e.Refuses(), e.Unwritable())
		}
	}
}

// L51: testdata/replies.txt has what servers of eight versions answered. Each reason has the
// same code in all of them, also where it stopped a script.
func TestL51_replies_of_every_version_are_classified_alike(t *testing.T) {
	codes := map[string]string{
		"denied command": "NOPERM", "denied key": "NOPERM", "denied channel": "NOPERM",
		"denied EVALSHA": "NOPERM", "declared denied key": "NOPERM",
		"call of a denied command": "NOPERM", "pcall of a denied command": "NOPERM", "caught call of a denied command": "NOPERM",
		"call with a denied key": "NOPERM", "call with a denied channel": "NOPERM",
		"WRONGPASS": "WRONGPASS", "NOAUTH": "NOAUTH", "NOSCRIPT": "NOSCRIPT",
		"unknown command": "ERR", "call of an unknown command": "ERR", "call that finds another type": "WRONGTYPE",
		"OOM": "OOM", "call OOM": "OOM", "MISCONF": "MISCONF", "call MISCONF": "MISCONF",
		"NOREPLICAS": "NOREPLICAS", "call NOREPLICAS": "NOREPLICAS", "pcall NOREPLICAS": "NOREPLICAS",
		"READONLY": "READONLY", "call READONLY": "READONLY", "pcall READONLY": "READONLY",
		"BUSY": "BUSY", "EVAL while BUSY": "BUSY", "script that was killed": "ERR", "UNKILLABLE": "UNKILLABLE",
		"LOADING": "LOADING", "EVAL while LOADING": "LOADING", "EVALSHA while LOADING": "LOADING",
		"MASTERDOWN": "MASTERDOWN", "call MASTERDOWN": "MASTERDOWN",
		"too many clients": "ERR", "CLUSTERDOWN": "CLUSTERDOWN", "CROSSSLOT": "CROSSSLOT",
	}
	recorded, err := os.ReadFile("testdata/replies.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int) // denied commands, by server
	for line := range strings.Lines(string(recorded)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 3)
		if want, ok := codes[parts[1]]; !ok || Server(parts[2]).Code != want {
			t.Errorf("%s, %s: code %q, want %q: %s", parts[0], parts[1], Server(parts[2]).Code, want, parts[2])
		}
		if codes[parts[1]] == "NOPERM" {
			seen[parts[0]]++
		}
		if want := strings.HasPrefix(parts[1], "denied ") || parts[1] == "declared denied key"; Server(parts[2]).Denied() != want {
			t.Errorf("%s, %s: denied: %t, want %t: %s", parts[0], parts[1], !want, want, parts[2])
		}
	}
	for _, server := range []string{"Redis 6.2.16", "Redis 7.0.15", "Redis 7.2.6", "Redis 7.4.1", "Redis 8.0.6", "Valkey 7.2.7", "Valkey 8.0.1", "Valkey 9.1.2"} {
		if seen[server] != 10 {
			t.Errorf("%s: %d recorded replies to what is denied, want 10", server, seen[server])
		}
	}
}

func TestError_is_found_through_every_wrapper(t *testing.T) {
	var err error = &Error{Node: "a:1", Op: OpRelease, Err: Server("OOM no memory")}
	err = fmt.Errorf("wrapped: %w", err)
	if !errors.Is(err, &ServerError{Code: "OOM"}) || errors.Is(err, &ServerError{Code: "BUSY"}) {
		t.Errorf("%v", err)
	}
	if got, want := err.Error(), "wrapped: a:1: release: OOM no memory"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestError_of_a_reply_without_failure_is_no_error(t *testing.T) {
	if r := (Reply{Value: "OK"}); errors.Is(r.Err, os.ErrClosed) || errors.Is(r.Err, &ServerError{Code: "OOM"}) {
		t.Error("a nil Error is ErrClosed or OOM")
	}
}

// A login whose AUTH is renamed away, or that goes to a proxy, is an unknown command with a password.
func TestServerError_does_not_show_what_the_server_quotes_of_an_unknown_command(t *testing.T) {
	for reply, want := range map[string]string{
		"ERR unknown command 'AUTH', with args beginning with: 'ann' 'hunter2' ":    "ERR unknown command 'AUTH'",
		"ERR unknown command `AUTH`, with args beginning with: `ann`, `hunter2`, ":  "ERR unknown command `AUTH`",
		"ERR unknown command 'AUTH', with args beginning with: 'hunter2 and a long": "ERR unknown command 'AUTH'",
	} {
		if got := Server(reply); got.Error() != want || got.Message != want || got.Code != "ERR" {
			t.Errorf("%#v, want %q", got, want)
		}
	}
}

func TestServerError_shows_nothing_that_a_terminal_obeys(t *testing.T) {
	for reply, want := range map[string]string{
		"ERR plain \"quoted\" ключ":        "ERR plain \"quoted\" ключ",
		"ERR \x1b[2J\a\x7f\x00\r":          `ERR \x1b[2J\a\x7f\x00\r`,
		"ERR \u009b31m \u202egpj.exe":      `ERR \u009b31m \u202egpj.exe`,
		"ERR \xff\xc0":                     `ERR \xff\xc0`,
		"ERR " + strings.Repeat("x", 1000): "ERR " + strings.Repeat("x", 296) + "...",
	} {
		if got := Server(reply).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
