//go:build !linux

package faultproxy

import "time"

// alarm wakes a goroutine, as exactly as the runtime's timers.
type alarm struct {
	timer  *time.Timer
	closed chan struct{}
}

func newAlarm() (*alarm, error) {
	return &alarm{time.NewTimer(time.Hour), make(chan struct{})}, nil
}

// set has wait return at an instant, instead of any that was set before.
func (a *alarm) set(at time.Time) { a.timer.Reset(time.Until(at)) }

// wait reports false when the alarm was closed.
func (a *alarm) wait() bool {
	select {
	case <-a.timer.C:
		return true
	case <-a.closed:
		return false
	}
}

func (a *alarm) close() {
	a.timer.Stop()
	close(a.closed)
}
