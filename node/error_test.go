package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestServerError_is_classified_by_its_first_word(t *testing.T) {
	for _, c := range []struct {
		reply   string
		code    string
		refuses bool
	}{
		{"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT", false},
		{"LOADING Redis is loading the dataset in memory", "LOADING", true},
		{"READONLY You can't write against a read only replica.", "READONLY", true},
		{"MISCONF Redis is configured to save RDB snapshots", "MISCONF", true},
		{"OOM command not allowed when used memory > 'maxmemory'.", "OOM", true},
		{"BUSY Redis is busy running a script.", "BUSY", true},
		{"NOREPLICAS Not enough good replicas to write.", "NOREPLICAS", true},
		{"MASTERDOWN Link with MASTER is down", "MASTERDOWN", true},
		{"NOAUTH Authentication required.", "NOAUTH", true},
		{"NOPERM this user has no permissions", "NOPERM", true},
		{"WRONGPASS invalid username-password pair", "WRONGPASS", false},
		{"WRONGTYPE Operation against a key", "WRONGTYPE", false},
		{"ERR unknown command", "ERR", false},
		{"ERR Error running script (call to f_1be0): @user_script:10: @user_script: 10: -READONLY You can't write against a read only replica.", "READONLY", true},
		{"ERR Error running script (call to f_1be0): @user_script:10: @user_script: 10: Wrong number of args", "ERR", false},
		{"", "", false},
	} {
		e := Server(c.reply)
		if e.Code != c.code || e.Refuses() != c.refuses || e.Error() != c.reply {
			t.Errorf("%q: code %q, refuses %v", c.reply, e.Code, e.Refuses())
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
	down := newOutage("a:1", ErrNotMaster).failure(OpAcquire)
	if !errors.Is(down, ErrDown) || !errors.Is(down, ErrNotMaster) {
		t.Errorf("%v", down)
	}
}

func TestError_of_a_reply_without_failure_is_no_error(t *testing.T) {
	if r := (Reply{Value: "OK"}); errors.Is(r.Err, ErrDown) || errors.Is(r.Err, &ServerError{Code: "OOM"}) {
		t.Error("a nil Error is ErrDown or OOM")
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
