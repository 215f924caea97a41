package redlock

import (
	"fmt"
	"time"
)

// String says which lock it is, by which value it is held, and for how long or
// why no more: one line, for logs.
func (l *Lease) String() string {
	held := fmt.Sprintf("lock %q as %s", l.Name(), l.Value())
	if err := l.Err(); err != nil {
		return held + ": " + err.Error()
	}
	l.mu.Lock()
	left := l.left(l.now())
	l.mu.Unlock()
	return held + ": valid for another " + left.Round(time.Millisecond).String()
}
