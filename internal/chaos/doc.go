// Package chaos runs real clients against real redis-servers while a seeded
// nemesis breaks both, and judges what happened afterwards.
//
// Every client is a process of its own. It takes locks, uses them on a storage
// that never fails, and logs its observations in a journal, by the machine's
// one monotonic clock. The nemesis stops, kills and restarts masters with and
// without their data, flushes them, fills their memory, moves their clocks,
// cuts, delays and resets links, and stops and kills clients. When it is over,
// the journals are checked: no two holders at a time, no lost update, no loss
// announced too late, no key left behind, and every client served again.
//
// Nothing is assumed beyond the journals, so a finding is never a
// matter of opinion: a lease that was valid at two instants was valid in
// between, and two such spans of one lock never overlap.
//
// A Workload is one way to use one kind of lock; the checks are shared.
package chaos
