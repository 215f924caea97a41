package promises

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// tokens are the fencing tokens that were handed out.
type tokens struct {
	byLock map[string]*handedOut
	lost   bool          // a master has forgotten counters
	spread time.Duration // by how much the clients' wall clocks have differed
}

// handedOut are the tokens of one lock.
type handedOut struct {
	highest uint64
	owners  map[uint64]string
	permits map[string]uint64 // the highest token of each permit
}

func (ts *tokens) of(name string) *handedOut {
	h := ts.byLock[name]
	if h == nil {
		h = &handedOut{owners: map[uint64]string{}, permits: map[string]uint64{}}
		ts.byLock[name] = h
	}
	return h
}

// highest returns the highest token of each lock until now.
func (ts tokens) highest(t *Scene, names []string) map[string]uint64 {
	ts.spread = max(ts.spread, t.spread())
	all := map[string]uint64{}
	for _, name := range names {
		all[name] = ts.of(name).highest
	}
	return all
}

// spread is by how much the clients' wall clocks differ now.
func (t *Scene) spread() time.Duration {
	lowest, highest := world.Forever, -world.Forever
	for _, c := range t.Clients {
		shown := c.Host.Clock.WallNow()
		lowest, highest = min(lowest, shown), max(highest, shown)
	}
	return highest - lowest
}

// token reports a fencing token that was handed out before, or that is not above the tokens of
// earlier holders. The checks know only when leases were returned. A call that began after that
// must get a higher token. So must a lease that is valid when it is returned, unless it shares
// a semaphore.
func (k *checker) token(cl *Claim, token uint64) {
	t := k.scene
	k.tokens.spread = max(k.tokens.spread, t.spread())
	if k.tokens.lost && k.tokens.spread >= t.Config.Guard(1).Hold {
		return // only clocks could tell what the counters were
	}
	k.known(cl, token)
	for _, name := range cl.Names {
		h := k.tokens.of(name)
		before := cl.Above[name]
		if cl.Hold.Valid() && cl.Permits == 0 {
			before = h.highest
		}
		before = max(before, k.sameBefore(cl, h, token))
		what := ""
		switch owner, twice := h.owners[token]; {
		case token == 0:
			what = "no token"
		case twice:
			what = fmt.Sprintf("the token %d of %s", token, owner)
		case token <= before:
			what = fmt.Sprintf("the token %d after %d", token, before)
		}
		h.owners[token] = cl.Client.Host.Name
		h.highest = max(h.highest, token)
		t.Stats.Checked(tally.TokenRises, what == "")
		if what != "" {
			k.Report(tally.Violation{
				Kind:    tally.Token,
				What:    fmt.Sprintf("%s holds %q with %s", cl.Client.Host.Name, name, what),
				Clients: []int{cl.Client.Index},
			})
		}
	}
}

// sameBefore returns the highest token that a lease with one of the same permits has had. A
// lease that is valid by now comes after the earlier ones.
func (k *checker) sameBefore(cl *Claim, h *handedOut, token uint64) (before uint64) {
	for _, b := range k.Ledger.of(cl, cl.Names[0]) {
		if cl.Permits == 0 || !cl.Hold.Valid() {
			continue
		}
		for slot := range strings.SplitSeq(b.agreed(cl.Value), ",") {
			before = max(before, h.permits[slot])
			h.permits[slot] = max(h.permits[slot], token)
		}
	}
	return before
}

// known looks whether a quorum of masters has counted as far as the token of a lease: the
// next client finds it there. They must have the permits of a valid lease, or else the next client
// with the same permits may have got these before the token was counted. What masters have
// forgotten they may have counted.
func (k *checker) known(cl *Claim, token uint64) {
	if k.scene.Lapses() > 0 || k.scene.Apart() {
		return
	}
	count := int64(token)
	if cl.Permits > 0 {
		count = int64(token / wire.MaxPermits)
	}
	left, oneClock := cl.left(), k.scene.Config.Faults.OneClock
	if oneClock {
		left = 0 // the clock of the client may be wrong
	}
	for _, name := range cl.Names {
		n := 0
		for _, m := range k.scene.Masters {
			early := oneClock && m.Host.Clock.GainedUntil() > 0 // such a clock ends permits early
			has := cl.Permits == 0 || !cl.Hold.Valid() || early || k.keepsOne(m, cl, name, left)
			if has && m.Keys.Counter("redlock:token:"+name) >= count {
				n++
			}
		}
		if n < quorum.Size(len(cl.Client.Masters)) {
			k.Report(tally.Violation{
				Kind:    tally.Token,
				What:    fmt.Sprintf("%s holds %q with the token %d, and only %d of %d masters have counted so far", cl.Client.Host.Name, name, token, n, len(cl.Client.Masters)),
				Clients: []int{cl.Client.Index},
			})
		}
	}
}
