package operate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// The table of what a master is taught, by what two masters store under a prefix. A
// master says of a key what it is by the word in it.
func TestS51_what_masters_know_is_joined(t *testing.T) {
	const p = "app:redlock:"
	for what, c := range map[string]struct {
		one, other map[string]string
		latches    [2][]string
		want       []string // what the master is taught, in order
	}{
		"nothing":                        {},
		"the higher counter":             {one: map[string]string{p + "token:a": "9"}, other: map[string]string{p + "token:a": "10", p + "token:b": "1"}, want: []string{p + "token:a 10 1"}},
		"the later Resize":               {one: map[string]string{p + "permits:s": "9 1"}, other: map[string]string{p + "permits:s": "2 7"}, want: []string{"2 7"}},
		"the later Resize, found first":  {one: map[string]string{p + "permits:s": "2 7"}, other: map[string]string{p + "permits:s": "9 1"}, want: []string{"2 7"}},
		"the Resize to more":             {one: map[string]string{p + "permits:s": "9 7"}, other: map[string]string{p + "permits:s": "2 7"}, want: []string{"9 7"}},
		"the Resize to more, found last": {one: map[string]string{p + "permits:s": "2 7"}, other: map[string]string{p + "permits:s": "9 7"}, want: []string{"9 7"}},
		"a size that nobody has set":     {one: map[string]string{p + "permits:s": "3"}, want: []string{"3 0"}},
		"all arrivals":                   {latches: [2][]string{{"x", "z", "y"}, {"x", "w"}}, want: []string{"604800000 w x y z"}},
		"what is gone when it is read":   {one: map[string]string{p + "token:a": ""}},
		"other keys":                     {one: map[string]string{p + "marker": "x", p + "leader:a": "x", p + "token": "x", "redlock:token:a": "x", "token:a": "x"}},
	} {
		s, all := someMasters(t, 3, func(all []*fake) {
			for i, keys := range []map[string]string{c.one, c.other} {
				for key, value := range keys {
					all[i].keys[key] = value
				}
				if c.latches[i] != nil {
					all[i].sets[p+"latch:g:done"] = c.latches[i]
				}
			}
		})
		for _, each := range s {
			each.config = &node.Config{KeyPrefix: "app:"}
		}
		known, err := s.known()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := known.teach(s[2]); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, cmd := range all[2].ran {
			args := strings.Join(cmd.Args, " ")
			switch cmd.Script {
			case wire.ScriptInherit:
				got = append(got, cmd.Keys[0]+" "+args)
			case wire.ScriptPermitResize:
				got = append(got, args)
			case wire.ScriptLatchWrite:
				got = append(got, cmd.Args[0]+" "+strings.Join(cmd.Args[3:], " "))
			}
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s: is taught %q, want %q", what, got, c.want)
		}
	}
}

// What cannot be read is named, and what cannot be taken over, but for a Resize that the
// master knows to be overtaken.
func TestS51_what_cannot_be_read_or_taken_over(t *testing.T) {
	for _, c := range []struct {
		key, value string
		refuses    func(*wire.Command) bool
		code       string
		want       string
	}{
		{"redlock:token:a", "many", nil, "", `"redlock:token:a" cannot be read`},
		{"redlock:permits:a", "many 1", nil, "", `"redlock:permits:a" cannot be read`},
		{"redlock:permits:a", "1 many", nil, "", `"redlock:permits:a" cannot be read`},
		{"redlock:token:a", "7", func(cmd *wire.Command) bool { return cmd.Name == "GET" }, "NOPERM no", `"redlock:token:a" cannot be read`},
		{"redlock:latch:g:a", "", func(cmd *wire.Command) bool { return cmd.Name == "SSCAN" }, "NOPERM no", `"redlock:latch:g:a" cannot be read`},
		{"redlock:token:a", "7", func(cmd *wire.Command) bool { return cmd.Name == "SCAN" }, "NOPERM no", "cannot be searched for keys"},
		{"redlock:token:a", "7", func(cmd *wire.Command) bool { return cmd.Script == wire.ScriptInherit }, "OOM full", `does not take over "redlock:token:a"`},
		{"redlock:permits:a", "7 1", func(cmd *wire.Command) bool { return cmd.Script == wire.ScriptPermitResize }, "OOM full", "does not take over"},
		{"redlock:permits:a", "7 1", func(cmd *wire.Command) bool { return cmd.Script == wire.ScriptPermitResize }, "PERMITS later", ""},
		{"redlock:token:a", "7", nil, "", ""},
	} {
		s, all := someMasters(t, 1, func(all []*fake) {
			if c.value != "" {
				all[0].keys[c.key] = c.value
			} else {
				all[0].sets[c.key] = []string{"x"}
			}
		})
		all[0].refuses = func(cmd *wire.Command) string {
			if c.refuses != nil && c.refuses(cmd) {
				return c.code
			}
			return ""
		}
		known, err := s.known()
		if err == nil {
			err = known.teach(s[0])
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q, %q: %v; want %q", c.key, c.value, c.code, err, c.want)
		}
	}
}

// The lessons fit into the commands that a master runs at once.
func TestS51_lessons_come_in_parts(t *testing.T) {
	l := newLasting()
	for i := range 1001 {
		l.counters[fmt.Sprint("redlock:token:", i)] = uint64(i)
	}
	l.arrivals["redlock:latch:g:done"] = map[string]bool{}
	for i := range 2001 {
		l.arrivals["redlock:latch:g:done"][fmt.Sprint(i)] = true
	}
	s, all := someMasters(t, 1, nil)
	if err := l.teach(s[0]); err != nil {
		t.Fatal(err)
	}
	counters, arrivals := 0, 0
	for _, cmd := range all[0].ran {
		switch cmd.Script {
		case wire.ScriptInherit:
			if counters += len(cmd.Keys); len(cmd.Keys) != len(cmd.Args) || len(cmd.Keys) > 500 {
				t.Errorf("%d counters with %d values in one command", len(cmd.Keys), len(cmd.Args))
			}
		case wire.ScriptLatchWrite:
			if arrivals += len(cmd.Args) - 3; len(cmd.Args) > 1003 {
				t.Errorf("%d arrivals in one command", len(cmd.Args)-3)
			}
		}
	}
	if counters != 1001 || arrivals != 2001 {
		t.Errorf("learned %d counters and %d arrivals", counters, arrivals)
	}
}
