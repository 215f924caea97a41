package operate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

const hold = time.Minute

// fake is a master that an operator asks. It answers in steps of a millisecond.
type fake struct {
	now      *time.Time // of all masters
	run      string
	role     string
	promo    string // its Evidence.Promotion
	timeless bool   // it does not tell the time
	marker   string
	keys     map[string]string // strings, of which those in ttl expire
	ttl      map[string]int64
	sets     map[string][]string

	breaks  func() error            // an error: the connection breaks at this question
	scan    func(cursor string) any // the answer to SCAN; nil: by the keys
	before  func(*wire.Command)     // what others do just before a command runs
	refuses func(*wire.Command) string
	ran     []*wire.Command
}

func (f *fake) Close() {}

func (f *fake) Ask(cmds ...*wire.Command) ([]wire.Reply, error) {
	var answers []wire.Reply
	if f.breaks != nil {
		if err := f.breaks(); err != nil {
			return nil, err
		}
	}
	for _, cmd := range cmds {
		*f.now = f.now.Add(time.Millisecond)
		if f.before != nil {
			f.before(cmd)
		}
		f.ran = append(f.ran, cmd)
		if f.refuses != nil && f.refuses(cmd) != "" {
			answers = append(answers, wire.Reply{Err: &wire.Error{Op: cmd.Op, Err: wire.Server(f.refuses(cmd))}})
			continue
		}
		answers = append(answers, wire.Reply{Value: f.answer(cmd)})
	}
	return answers, nil
}

func (f *fake) answer(cmd *wire.Command) any {
	switch {
	case cmd.Script == wire.ScriptMarker:
		if cmd.Args[1] != "" && cmd.Args[0] == f.marker {
			f.marker = cmd.Args[1]
		}
		if f.timeless {
			return []any{f.marker, "", "", "", ""}
		}
		us := f.now.UnixMicro()
		info := "role:" + f.role + "\r\nmaster_replid:" + f.promo + "\r\nmaster_replid2:x\r\n"
		return []any{f.marker, strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10), info, ""}
	case cmd.Script != nil:
		return int64(1)
	case cmd.Name == "ROLE":
		return []any{f.role}
	case cmd.Name == "INFO":
		return "run_id:" + f.run + "\r\n"
	case cmd.Name == "SET" && cmd.Args[1] == "XX" && f.keys[cmd.Keys[0]] == "":
		return nil
	case cmd.Name == "GET":
		return f.keys[cmd.Keys[0]]
	case cmd.Name == "TYPE" && f.keys[cmd.Keys[0]] == "":
		return "zset"
	case cmd.Name == "TYPE":
		return "string"
	case cmd.Name == "PTTL":
		return f.ttl[cmd.Keys[0]]
	case cmd.Name == "SCAN" && f.scan != nil:
		return f.scan(cmd.Args[0])
	case cmd.Name == "SCAN":
		return page(slices.Sorted(maps.Keys(f.all())), cmd.Args[0], cmd.Args[2])
	case cmd.Name == "SSCAN":
		return page(f.sets[cmd.Keys[0]], cmd.Args[0], "*")
	}
	panic(cmd.Name)
}

// all are the keys but the marker.
func (f *fake) all() map[string]bool {
	all := map[string]bool{}
	for key := range f.keys {
		all[key] = true
	}
	for key := range f.ttl {
		all[key] = true
	}
	for key := range f.sets {
		all[key] = true
	}
	return all
}

// page is one of two.
func page(all []string, cursor, match string) []any {
	at, _ := strconv.Atoi(cursor)
	end, next := at+2, strconv.Itoa(at+2)
	if end >= len(all) {
		end, next = len(all), "0"
	}
	var found []any
	for _, each := range all[at:end] {
		if ok, _ := path.Match(match, each); ok {
			found = append(found, each)
		}
	}
	return []any{next, found}
}

// at is a site of the masters' group a, b, c and so on, and its master.
func (f *fake) at(addr string, config *node.Config, group guard.GroupID) *site {
	return &site{addr: addr, config: config, group: group, dialogue: f}
}

// someMasters are masters of one group, as an operator has just looked at them. edit
// changes what they are before.
func someMasters(t *testing.T, n int, edit func([]*fake)) (sites, []*fake) {
	t.Helper()
	now := time.UnixMicro(1_714_564_800_000_000)
	config := &node.Config{Guard: guard.Config{Hold: hold}}
	group := guard.GroupOf("", letters(n)...)
	var s sites
	var all []*fake
	for i, addr := range letters(n) {
		f := &fake{now: &now, run: fmt.Sprint("run", i), role: "master", keys: map[string]string{}, ttl: map[string]int64{}, sets: map[string][]string{}}
		s, all = append(s, f.at(addr, config, group)), append(all, f)
		s[i].index = i
	}
	if edit != nil {
		edit(all)
	}
	if err := s.each((*site).look); err != nil {
		t.Fatal(err)
	}
	return s, all
}

func letters(n int) []string { return strings.Split("abcdefg"[:n], "")[:n] }

// markedIn is the marker of a master that clients of these addresses have used for long.
func markedIn(run string, hold time.Duration, group string, addrs ...string) guard.Marker {
	m := guard.NewMarker(run, time.UnixMicro(1_714_500_000_000_000))
	m.Hold, m.Group, m.Nonce = hold, guard.GroupOf(group, addrs...), "n0"
	return m
}

func (f *fake) stored(t *testing.T) guard.Marker {
	t.Helper()
	m, err := guard.ParseMarker(f.marker)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// arguments are what the script was called with, over all calls.
func (f *fake) arguments(script *wire.Script) (all []string) {
	for _, cmd := range f.ran {
		if cmd.Script == script {
			all = append(all, strings.Join(slices.Concat(cmd.Keys[:1], cmd.Args), " "))
		}
	}
	return all
}
