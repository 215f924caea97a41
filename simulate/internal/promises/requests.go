package promises

import (
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// This file has what the checks of transfers, and of requests to release a lock, ask the masters.

// AllWell reports whether nothing is wrong with any client or master, and nothing was that still
// has consequences; and whether all are notified of their turn.
func (t *Scene) AllWell() bool {
	if t.Config.Polling || t.Config.Mute || t.Config.Deaf > 0 {
		return false
	}
	if t.World.Now <= t.World.Rough+t.longestHold()+looks+t.Check.rest()+t.Check.attempt() {
		return false // a client that lets no master vote is in no queue, and pauses even after that
	}
	for _, c := range t.Clients {
		if !t.Check.Calm(c) || c.Preemption.Every > 0 || c.Closing || c.Host.Rests() || c.Host.Down || c.Host.Hangs() {
			return false
		}
	}
	return true
}

// Leads returns the only valid hold, and its value, if a quorum of masters stores it.
func (k *checker) Leads() (only *Claim, value string) {
	for _, cl := range k.Claims {
		if cl.Hold.Valid() {
			if only != nil {
				return nil, ""
			}
			only = cl
		}
	}
	if only == nil {
		return nil, ""
	}
	n := 0
	for _, m := range k.scene.Masters {
		if e := m.Keys.Find(only.Names[0]); e != nil && e.Value == only.Value {
			n++
		}
	}
	if n < quorum.Size(len(k.scene.Masters)) {
		return nil, ""
	}
	return only, only.Value
}

// StoredAnywhere returns the values of a lock that any master stores.
func (k *checker) StoredAnywhere(name string) map[string]bool {
	values := map[string]bool{}
	for _, m := range k.scene.Masters {
		if e := m.Keys.Find(name); e != nil {
			values[e.Value] = true
		}
	}
	return values
}

// Back is how long it takes to connect again after an outage, and to renew a lease.
func (k *checker) Back() time.Duration { return k.back(nil) }

// asksForRequests reports a client that asks for requests, and has no lease whose holder wants
// to know of them.
func (c *Client) asksForRequests(cmd *wire.Command) {
	if cmd.Name != "GET" || !strings.HasPrefix(cmd.Keys[0], wire.Requested("", "").Keys[0]) {
		return
	}
	for value := range c.Listens {
		if wire.Requested("", value).Keys[0] == cmd.Keys[0] {
			return
		}
	}
	c.Blame("it looks for requests at " + cmd.Keys[0] + ", and nobody wants to know of them")
}
