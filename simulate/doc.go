// Package simulate runs the production lock through every failure we know of, in
// virtual time and deterministically. Simulated clients are ordinary code that
// calls package redlock; masters, clocks and network are Go values; one goroutine
// runs it all.
//
// A seed determines a schedule: who does what when, and what goes wrong. The same
// seed gives the same run, to the last bit, on every machine of the same
// architecture. A run that breaks a promise can be repeated, shrunk to the few
// faults that matter, and looked at.
//
// The algorithm is not implemented a second time. Modelled are the masters, which
// tests compare with real ones command by command, and the transport below
// node.Node. The naive locks of the ladder are there to fail.
//
// Where to begin: Run in run.go, trial.go for one run of one schedule, check.go for
// the promises, catalogue.go for the known failures.
package simulate
