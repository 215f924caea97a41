package redlock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/values"
)

// Transfer resigns, and hands leadership to the waiting client of that id, whatever its place in
// the queue: see WithClientID. If several campaigns of it wait, the first leads.
//
// Transfer first looks for the client in the queue. It returns ErrNotQueued, with the clients that
// wait, if it is not among the first thousand, ErrNested if nested calls hold the lease, too (see
// Reentrant), and ErrNoQuorum when too few masters answered: then this process still leads. From
// there on Transfer is Unlock, and returns the same errors.
//
// There are never two leaders: the lease has ended before the masters are asked. If the chosen
// client dies meanwhile, the queue decides, as after any Unlock: Leader and Observe say who leads.
func (e *Election) Transfer(ctx context.Context, lease *Lease, clientID string) error {
	if err := e.leads("Transfer", lease); err != nil {
		return err
	}
	if clientID == "" {
		return fmt.Errorf("redlock: Transfer: client id: must not be empty")
	}
	found, err := e.client.Inspect(ctx, e.mutex.lock.name)
	if err != nil {
		return err
	}
	waiter, err := found.waiterOf(clientID)
	if err != nil {
		return lease.lock.failed("transfer", err, nil)
	}
	now := lease.now()
	if err := lease.letGoAlone(now); err != nil {
		return lease.lock.failed("transfer", err, nil)
	}
	return lease.releaseBy(lease.releaseCommand().HandTo(waiter), now)
}

// letGoAlone is letGo unless nested calls hold the lease, too: who leads next must find it ended.
func (l *Lease) letGoAlone(now drift.Instant) error {
	l.mu.Lock()
	if l.holds > 1 {
		defer l.mu.Unlock()
		return fmt.Errorf("%w: %d holds, unlock the others before", ErrNested, l.holds)
	}
	return l.letLast(now)
}

// waiterOf returns the id of the first waiter of a client.
func (h *Holder) waiterOf(client string) (id string, err error) {
	var others []string
	for _, w := range h.Queue {
		if w.Client == client {
			return values.ID(w.Value), nil
		}
		if !slices.Contains(others, w.Client) {
			others = append(others, w.Client)
		}
	}
	return "", fmt.Errorf("client %q: %w, %s", client, ErrNotQueued, waitingClients(others))
}

// waitingClients lists the clients that wait, for people: at most twenty.
func waitingClients(all []string) string {
	const most = 20
	switch {
	case len(all) == 0:
		return "nobody waits"
	case len(all) > most:
		return fmt.Sprintf("those who wait are %s, and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return "those who wait are " + strings.Join(all, ", ")
}
