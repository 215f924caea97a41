package wire_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

func array(fields ...any) wire.Reply { return wire.Reply{Value: fields} }

// bulk is a bulk string.
func bulk(s string) []byte { return []byte(s) }

// Every reader of answers reads the replies that its script gives, and takes nothing else
// for an answer: neither the answers to other scripts nor what no script says.
func TestEach_answer_is_read_as_its_script_gives_it(t *testing.T) {
	refusal := func(left time.Duration, foreign bool) wire.Refusal {
		return wire.Refusal{Left: left, Foreign: foreign, Passes: foreign}
	}
	queued := refusal(40*time.Millisecond, false)
	queued.Ticket = 7
	lacking := refusal(40*time.Millisecond, true)
	lacking.Lock, lacking.Holder = 1, "w"
	unknown := lacking
	unknown.Lock = -1
	full := refusal(40*time.Millisecond, false)
	full.Free = "1,3"
	for _, test := range []struct {
		name  string
		read  func(wire.Reply) (any, bool)
		right []wire.Reply
		want  []any
	}{
		{"state", of(wire.KeyStateOf), []wire.Reply{{Value: int64(1)}, {Value: int64(0)}, {Value: int64(-1)}}, []any{wire.Ours, wire.Absent, wire.Theirs}},
		{"ask", of(wire.AskRefusal), []wire.Reply{array(int64(40), int64(1)), array(int64(-1), int64(0)), array(int64(40), int64(2))},
			[]any{refusal(40*time.Millisecond, true), refusal(-time.Millisecond, false), wire.Refusal{Left: 40 * time.Millisecond, Passes: true}}},
		{"fenced", of(wire.FencedRefusal), []wire.Reply{array(int64(40), int64(0), int64(9))}, []any{refusal(40*time.Millisecond, false)}},
		{"fair", of(wire.FairRefusal), []wire.Reply{array(int64(40), int64(0), int64(9), int64(7))}, []any{queued}},
		{"many", of(func(r wire.Reply) (wire.Refusal, bool) { return wire.ManyRefusal(r, 2) }),
			[]wire.Reply{
				array(int64(40), int64(1), int64(0), int64(2), bulk("w")),
				array(int64(40), int64(1), int64(0), int64(3), bulk("w")),
				array(int64(40), int64(1), int64(0), int64(0), bulk("w")),
			}, []any{lacking, unknown, unknown}},
		{"permits refused", of(wire.PermitRefusal), []wire.Reply{array(int64(40), int64(0), bulk("1,3"))}, []any{full}},
		{"permits", grant(wire.PermitGrantOf), []wire.Reply{
			array(bulk("0,2"), bulk("1"), int64(5), int64(6)),
			array(bulk("0,2"), bulk("1"), int64(5), int64(6), bulk("0,2,4")),
		}, []any{
			[]any{wire.Slots("0,2"), wire.Slots("1"), uint64(5), int64(6), wire.Slots("")},
			[]any{wire.Slots("0,2"), wire.Slots("1"), uint64(5), int64(6), wire.Slots("0,2,4")},
		}},
		{"move", grant(wire.PermitMoveOf), []wire.Reply{array(bulk("0,2"), int64(5)), {}}, []any{
			[]any{wire.Slots("0,2"), wire.Slots(""), uint64(5), int64(0), wire.Slots("")},
			[]any{wire.Slots(""), wire.Slots(""), uint64(0), int64(0), wire.Slots("")},
		}},
		{"leader", of(wire.LeadingOf), []wire.Reply{
			array(bulk("v"), int64(40), int64(9), bulk("3"), bulk("hello")),
			array(nil, int64(-2), int64(9), bulk(""), bulk("")),
		}, []any{
			wire.Leading{Value: "v", Left: 40 * time.Millisecond, Counter: 9, Number: 3, Says: "hello"},
			wire.Leading{Left: -2 * time.Millisecond, Counter: 9},
		}},
		{"proclaim", func(r wire.Reply) (any, bool) {
			state, higher, ok := wire.ProclaimedOf(r)
			return []any{state, higher}, ok
		}, []wire.Reply{{Value: int64(1)}, {Value: int64(0)}, {Value: bulk("12")}},
			[]any{[]any{wire.Ours, int64(0)}, []any{wire.Absent, int64(0)}, []any{wire.Theirs, int64(12)}}},
		{"request", func(r wire.Reply) (any, bool) {
			later, ok := wire.OtherRequestOf(r)
			return later, ok
		}, []wire.Reply{{Value: int64(1)}, {Value: bulk("12")}}, []any{int64(0), int64(12)}},
		{"arrivals", func(r wire.Reply) (any, bool) {
			ids, whole, ok := wire.ArrivalsOf(r)
			return []any{ids, whole}, ok
		}, []wire.Reply{array(bulk("a"), bulk("."), bulk("b"))}, []any{[]any{[]string{"a", "b"}, true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, r := range test.right {
				if got, ok := test.read(r); !ok || !reflect.DeepEqual(got, test.want[i]) {
					t.Errorf("%v is read as %+v, %v; want %+v", r.Value, got, ok, test.want[i])
				}
				r.Err = &wire.Error{}
				if got, ok := test.read(r); ok {
					t.Errorf("an error is read as %+v", got)
				}
			}
			wrongs := []any{"OK", "QUEUED", int64(2), int64(-2), bulk("x")}
			switch test.name {
			case "arrivals": // any array is one
			case "move": // nil is one
				wrongs = append(wrongs, []any{int64(1)}, make([]any, 6))
			default:
				wrongs = append(wrongs, []any{int64(1)}, make([]any, 6), nil)
			}
			for _, wrong := range wrongs {
				if got, ok := test.read(wire.Reply{Value: wrong}); ok {
					t.Errorf("%v is read as %+v", wrong, got)
				}
			}
		})
	}
}

// of adapts a reader.
func of[T any](read func(wire.Reply) (T, bool)) func(wire.Reply) (any, bool) {
	return func(r wire.Reply) (any, bool) {
		got, ok := read(r)
		return got, ok
	}
}

// grant adapts a reader of what a master gave us of a semaphore.
func grant(read func(wire.Reply) (wire.PermitGrant, bool)) func(wire.Reply) (any, bool) {
	return func(r wire.Reply) (any, bool) {
		g, ok := read(r)
		return []any{g.Slots(), g.Free(), g.Counter(), g.Resize(), g.Taken()}, ok
	}
}
