// Package redlock is a lock held by a quorum of independent Redis masters: the
// Redlock algorithm, with a lease that is renewed by itself and whose loss is
// announced in time.
//
// Guarantees. At any instant at most one client has a lease whose Valid
// is true, as long as
//
//   - clock rates of clients and masters agree within the drift factor while a
//     TTL passes (clocks may be off by any amount, and may be set);
//   - a master that forgets keys is kept out by the restart guard, or never
//     forgets them (WithDurableNodes);
//   - all clients use the same set of masters, and no TTL above the restart
//     guard.
//
// Processes may stop and resume, machines may be suspended, links may drop,
// delay, reset and be cut in one direction.
//
// Codes such as S3 and L12, here and in the names of tests, are rows of
// docs/failures.md: every known way to fail, and what stops it.
//
// Limits. A process that stops after looking at its lease can resume after the
// lease has ended and still act as its holder: its context is cancelled as soon
// as it runs again, but a write that is on its way can no longer be called
// back. No lock service can prevent that; a resource that
// refuses older fencing tokens can.
//
// The algorithm is in acquire.go: attempt, wait, attempt. Callers that wait are in
// internal/waiting. renew.go and release.go are the rest of a lease's life. What tells
// one kind of lock from another is in lock.go.
//
// Everything happens in the caller's goroutine, in callbacks of the nodes, and
// on one timer for all leases; nothing here starts a goroutine or reads a clock
// that was not injected. That is how the simulator runs this very code.
package redlock
