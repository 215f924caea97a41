// Package simulate runs the production lock through every failure we know of,
// deterministically: simulated clients are ordinary code that calls package
// redlock, on masters, clocks and a network made of Go values, in virtual time
// and on one goroutine.
//
// A seed determines a schedule: who does what when, and what goes wrong. The
// same seed gives the same run, to the last bit, on every machine of the same
// architecture; a run that breaks a promise can be repeated, shrunk to the few
// faults that matter, and looked at.
//
// Nothing of the algorithm is implemented here a second time. What is, are the
// masters (compared with real ones command by command), the transport below
// node.Node, and the naive locks of the ladder, which are there to fail.
package simulate
