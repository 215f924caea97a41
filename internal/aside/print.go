package aside

import (
	"io"
	"time"
)

// Print writes a line, and waits for the writer at most for limit: its reader may be stuck.
func Print(w io.Writer, line string, limit time.Duration) {
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.WriteString(w, line) // without a reader
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-wrote:
	case <-timer.C:
	}
}
