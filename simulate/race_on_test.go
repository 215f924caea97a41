//go:build race

package simulate

// The race detector makes a schedule ten times as slow, and there is only one
// goroutine to a schedule: a part of the seeds will do.
const slower = 10
