package simulate

import (
	"fmt"
	"time"
)

// This file checks the order of arrival in true time: nobody who waits is overtaken for ever,
// whatever the clocks of the others say (L41). Two that come at about the same time may be
// served in any order, and a waiter that has got the lock from a minority of the masters may
// be overtaken once; but those who come again and again must not have the lock in turns while
// somebody waits who has come before.

// overtakes notes that a caller that waited got a lock before others, of other clients, that
// came long before. Readers overtake no readers: they share the lock.
func (k *checker) overtakes(cl *claim) {
	for _, w := range k.wants {
		if w.process.client == cl.client || len(w.names) != 1 || !cl.about(w.names[0]) || w.reads && cl.shared() {
			continue
		}
		if cl.process == nil || cl.tried || cl.began <= w.began+k.apart() || !k.waitsWell(w) || !k.calm(cl.client) {
			continue
		}
		if w.overtaken == nil {
			w.overtaken = map[*Process]int{}
		}
		w.overtaken[cl.process]++
		if n := w.overtaken[cl.process]; n > most && !w.told {
			w.told = true
			k.report(Violation{
				Kind:    Passed,
				What:    fmt.Sprintf("%s got %q for the %d. time while %s, which came %v before the last, waits for it", cl.process.name, w.names[0], n, w.process.name, short(cl.began-w.began)),
				Clients: []int{cl.client.index, w.process.client.index},
			})
		}
	}
}

// most is how often one caller may overtake another that waits.
const most = 2

// apart is by how much one must come earlier to be first. A ticket is by what the masters'
// clocks said at the last heartbeat.
func (k *checker) apart() time.Duration { return k.trips() + heartbeat/10 }

// waitsWell reports whether nothing has been wrong for a waiter since it came.
func (k *checker) waitsWell(w *want) bool {
	c := w.process.client
	return w.ctx.Err() == nil && w.began > k.settled(c) && k.calm(c) && c.host.resumed < w.began && k.trial.config.deaf == 0 && !k.trial.config.polling
}
