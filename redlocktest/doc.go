// Package redlocktest gives tests a redlock client and five masters in memory:
//
//	client, masters := redlocktest.New(t)
//
// There is nothing to install and nothing to wait for: the masters need no
// port, no goroutine and no restart guard before the first lock. They are
// miniredis servers that run the library's own scripts, and every fault that a
// fleet of masters has can be made: Kill, Restart, Hang, Cut, Expire,
// LoseQuorum.
//
// # Time
//
// Keys expire by the client's clock. That is the system's clock; inside a
// bubble of testing/synctest it is the bubble's, so that time.Sleep(time.Hour)
// takes no time and everything that is due meanwhile happens in order. Or it is
// a mock:
//
//	mock := clock.NewMock()
//	client, masters := redlocktest.New(t, redlock.WithClock(mock))
//
// Mock.Add starts what falls due in goroutines of its own and does not wait for
// it. So move a mock by less than a third of the TTL at a time where renewals
// matter, or use a bubble.
//
// # At the end of the test
//
// The clients are closed when the test ends. A lock that a quorum of masters
// still stores fails the test: some code did not unlock it.
package redlocktest
