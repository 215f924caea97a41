package promises

import (
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Readers and the holders of permits share a lock. The ledger has a book for the share of each
// waiter, so that all checks of what masters store see the share as they see a lock.

// at returns what a master stores of a book.
func (k *checker) at(m *fleet.Master, b *book) (e *masters.Entry, which string) {
	if b.waiter == "" {
		return m.Keys.Find(b.name), ""
	}
	return m.Share(k.scene.Config.Lock, b.name, b.waiter)
}

// sharesOf returns the books of all shares that a command may have changed at a master, and
// opens one for a new share.
func (k *checker) sharesOf(m *fleet.Master, cmd *wire.Command) (books []*book) {
	kind := k.scene.Config.Lock
	if kind != plan.ReadWriteLock && !kind.IsSemaphore() || len(cmd.Keys) == 0 || len(cmd.Args) == 0 {
		return nil
	}
	name, lg := strings.TrimPrefix(cmd.Keys[0], "redlock:slots:"), &k.Ledger
	waiter, _ := masters.SplitValue(cmd.Args[0])
	lg.books = slices.DeleteFunc(lg.books, func(b *book) bool { return b.waiter != "" && !b.used(k.scene.World.Now) })
	for _, b := range lg.books {
		if b.name == name && b.waiter != "" {
			books = append(books, b)
		}
	}
	if slices.ContainsFunc(books, func(b *book) bool { return b.waiter == waiter }) {
		return books
	}
	b := &book{name: name, waiter: waiter, at: make([]shelf, lg.masters)}
	if e, _ := k.at(m, b); e != nil && waiter != "" {
		lg.books, books = append(lg.books, b), append(books, b)
	}
	return books
}

// sharedAt reports whether a master stores a share, or has given its permits to others.
func (k *checker) sharedAt(m *fleet.Master, cl *Claim, name string) bool {
	return slices.ContainsFunc(k.Ledger.of(cl, name), func(b *book) bool {
		e, _ := k.at(m, b)
		return e != nil || b.waiter != "" && cl.Permits > 0 && slices.ContainsFunc(strings.Split(b.agreed(cl.Value), ","), func(slot string) bool {
			return m.OwnerOf(name, slot) != ""
		})
	})
}
