package node_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
)

func array(fields ...any) node.Reply { return node.Reply{Value: fields} }

// bulk is a bulk string.
func bulk(s string) []byte { return []byte(s) }

// Every reader of answers reads the replies that its script gives, and takes nothing else
// for an answer: neither the answers to other scripts nor what no script says.
func TestEach_answer_is_read_as_its_script_gives_it(t *testing.T) {
	refusal := func(left time.Duration, foreign bool) node.Refusal {
		return node.Refusal{Left: left, Foreign: foreign}
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
		read  func(node.Reply) (any, bool)
		right []node.Reply
		want  []any
	}{
		{"state", of(node.KeyStateOf), []node.Reply{{Value: int64(1)}, {Value: int64(0)}, {Value: int64(-1)}}, []any{node.Ours, node.Absent, node.Theirs}},
		{"ask", of(node.AskRefusal), []node.Reply{array(int64(40), int64(1)), array(int64(-1), int64(0))},
			[]any{refusal(40*time.Millisecond, true), refusal(-time.Millisecond, false)}},
		{"fenced", of(node.FencedRefusal), []node.Reply{array(int64(40), int64(0), int64(9))}, []any{refusal(40*time.Millisecond, false)}},
		{"fair", of(node.FairRefusal), []node.Reply{array(int64(40), int64(0), int64(9), int64(7))}, []any{queued}},
		{"many", of(func(r node.Reply) (node.Refusal, bool) { return node.ManyRefusal(r, 2) }),
			[]node.Reply{
				array(int64(40), int64(1), int64(0), int64(2), bulk("w")),
				array(int64(40), int64(1), int64(0), int64(3), bulk("w")),
				array(int64(40), int64(1), int64(0), int64(0), bulk("w")),
			}, []any{lacking, unknown, unknown}},
		{"permits refused", of(node.PermitRefusal), []node.Reply{array(int64(40), int64(0), bulk("1,3"))}, []any{full}},
		{"permits", grant(node.PermitGrantOf), []node.Reply{
			array(bulk("0,2"), bulk("1"), int64(5), int64(6)),
			array(bulk("0,2"), bulk("1"), int64(5), int64(6), bulk("0,2,4")),
		}, []any{
			[]any{node.Slots("0,2"), node.Slots("1"), uint64(5), int64(6), node.Slots("")},
			[]any{node.Slots("0,2"), node.Slots("1"), uint64(5), int64(6), node.Slots("0,2,4")},
		}},
		{"move", grant(node.PermitMoveOf), []node.Reply{array(bulk("0,2"), int64(5)), {}}, []any{
			[]any{node.Slots("0,2"), node.Slots(""), uint64(5), int64(0), node.Slots("")},
			[]any{node.Slots(""), node.Slots(""), uint64(0), int64(0), node.Slots("")},
		}},
		{"leader", of(node.LeadingOf), []node.Reply{
			array(bulk("v"), int64(40), int64(9), bulk("3"), bulk("hello")),
			array(nil, int64(-2), int64(9), bulk(""), bulk("")),
		}, []any{
			node.Leading{Value: "v", Left: 40 * time.Millisecond, Counter: 9, Number: 3, Says: "hello"},
			node.Leading{Left: -2 * time.Millisecond, Counter: 9},
		}},
		{"proclaim", func(r node.Reply) (any, bool) {
			state, higher, ok := node.ProclaimedOf(r)
			return []any{state, higher}, ok
		}, []node.Reply{{Value: int64(1)}, {Value: int64(0)}, {Value: bulk("12")}},
			[]any{[]any{node.Ours, int64(0)}, []any{node.Absent, int64(0)}, []any{node.Theirs, int64(12)}}},
		{"arrivals", func(r node.Reply) (any, bool) {
			ids, whole, ok := node.ArrivalsOf(r)
			return []any{ids, whole}, ok
		}, []node.Reply{array(bulk("a"), bulk("."), bulk("b"))}, []any{[]any{[]string{"a", "b"}, true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, r := range test.right {
				if got, ok := test.read(r); !ok || !reflect.DeepEqual(got, test.want[i]) {
					t.Errorf("%v is read as %+v, %v; want %+v", r.Value, got, ok, test.want[i])
				}
				r.Err = &node.Error{}
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
				if got, ok := test.read(node.Reply{Value: wrong}); ok {
					t.Errorf("%v is read as %+v", wrong, got)
				}
			}
		})
	}
}

// of adapts a reader.
func of[T any](read func(node.Reply) (T, bool)) func(node.Reply) (any, bool) {
	return func(r node.Reply) (any, bool) {
		got, ok := read(r)
		return got, ok
	}
}

// grant adapts a reader of what a master gave us of a semaphore.
func grant(read func(node.Reply) (node.PermitGrant, bool)) func(node.Reply) (any, bool) {
	return func(r node.Reply) (any, bool) {
		g, ok := read(r)
		return []any{g.Slots(), g.Free(), g.Counter(), g.Resize(), g.Taken()}, ok
	}
}
