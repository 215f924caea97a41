package masters

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/node/wire"
)

// resizing is a Resize under way: what Semaphore.Resize does, by hand, so that what
// it sends can arrive in any order, or not at all.
type resizing struct {
	to     int
	order  int64
	after  []*resizing // that were complete when it began
	sent   []int       // masters where it has not arrived yet
	agreed int         // masters that said yes
}

// Resizes in any number at once: when all has arrived, every master has the same
// number, whatever came first; and a Resize that began when another was complete
// replaces it at every master.
func TestResizes_in_any_order_come_to_one_number(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{3, 4, 5}).Draw(t, "masters")
		servers := make([]*Keyspace, n)
		for i := range servers {
			servers[i] = NewKeyspace(func() int64 { return begins.UnixMicro() })
		}
		var all, complete []*resizing
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(all) < 5 && rapid.IntRange(0, 5).Draw(t, "begin") == 0 {
				r := &resizing{to: rapid.IntRange(1, 4).Draw(t, "to"), after: slices.Clone(complete)}
				r.order = int64(rapid.IntRange(1, 3).Draw(t, "clock"))
				r.sent = rapid.Permutation(indexes(n)).Draw(t, "masters in turn")
				for _, i := range rapid.Permutation(indexes(n)).Draw(t, "asked")[:n/2+1] {
					_, order := servers[i].Size(semaphoreA())
					r.order = max(r.order, order+1)
				}
				all = append(all, r)
				continue
			}
			if len(all) > 0 {
				r := rapid.SampledFrom(all).Draw(t, "which")
				if r.arrives(servers) && r.agreed == n/2+1 {
					complete = append(complete, r)
				}
			}
		}
		for _, r := range rapid.Permutation(all).Draw(t, "the rest") {
			for r.arrives(servers) {
			}
		}
		mustHaveOneNumber(t, servers, all)
	})
}

// arrives has the next master run the script; false if all have.
func (r *resizing) arrives(servers []*Keyspace) bool {
	if len(r.sent) == 0 {
		return false
	}
	answer, refusal := servers[r.sent[0]].permitResize(semaphoreA(), []string{strconv.Itoa(r.to), strconv.FormatInt(r.order, 10)})
	if refusal == nil && answer == int64(1) {
		r.agreed++
	}
	r.sent = r.sent[1:]
	return true
}

func mustHaveOneNumber(t *rapid.T, servers []*Keyspace, all []*resizing) {
	total, order := servers[0].Size(semaphoreA())
	for i, m := range servers {
		if other, at := m.Size(semaphoreA()); other != total || at != order {
			t.Fatalf("master %d has %d by %d, the first %d by %d", i, other, at, total, order)
		}
	}
	for _, r := range all {
		for _, before := range r.after {
			if r.order <= before.order {
				t.Fatalf("the Resize %d began after %d was complete", r.order, before.order)
			}
		}
	}
}

func semaphoreA() PermitKeys {
	k := wire.PermitsOf("", "a").Resize(1, 1).Keys
	return PermitKeys{k[0], QueueKeys{k[1], k[2], k[3]}, k[4], k[5], k[6]}
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
