package chaos

import (
	"time"

	"golang.org/x/sys/unix"
)

// now reads the machine's monotonic clock. It is the same one for all
// processes, so that their journals can be put in one order.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every system that this builds on has it
	}
	return time.Duration(t.Nano())
}
