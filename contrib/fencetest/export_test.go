package fencetest

import "testing"

// RunPatiently is Run for writes of which none waits for the other.
func RunPatiently(t testing.TB, open func() Resource) { run(t, open, hang) }
