package faultproxy

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes a goroutine to a few microseconds. The timers of the runtime may
// be a millisecond late when nothing else happens: it sleeps in epoll_wait,
// which counts milliseconds. A timer of the system is a file there that becomes
// readable.
type alarm struct {
	file *os.File
	fd   int
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "alarm"), fd}, nil
}

// set has wait return at an instant, instead of any that was set before.
func (a *alarm) set(at time.Time) {
	in := max(1, time.Until(at)) // zero would switch it off
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(in))}
	unix.TimerfdSettime(a.fd, 0, &spec, nil) // fails only when it is closed
}

// wait reports false when the alarm was closed.
func (a *alarm) wait() bool {
	var times [8]byte
	_, err := a.file.Read(times[:])
	return err == nil
}

func (a *alarm) close() { a.file.Close() }
