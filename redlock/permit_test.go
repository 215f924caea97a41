package redlock

import (
	"testing"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// L23: a grant or a move that counted nothing is no answer of a fenced semaphore. Such a
// master would make a majority of which no token can be made.
func TestL23_fenced_permit_without_a_count_is_no_answer(t *testing.T) {
	f := &fencedPermit{permit: permit{semaphore: &semaphore{n: 1, total: 5}}}
	own := wire.Slots("3")
	f.slots.Store(&own)
	for count, want := range map[int64]quorum.Vote{0: quorum.Failed, 7: quorum.Granted} {
		grant := wire.Reply{Value: []any{[]byte("3"), []byte("1"), count, int64(0)}}
		move := wire.Reply{Value: []any{[]byte("3"), count}}
		for op, r := range map[wire.Op]wire.Reply{wire.OpAcquire: grant, wire.OpAsk: grant, wire.OpCommit: move} {
			if got := f.Judge(op, r); got != want {
				t.Errorf("%s, counted to %d: %v, want %v", op, count, got, want)
			}
		}
	}
}
