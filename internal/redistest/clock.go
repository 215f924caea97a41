package redistest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/gomodule/redigo/redis"
)

// StepClock moves the wall clock of a server with Faketime by d, forward or,
// if d is negative, back. Every command that is sent afterwards sees the new
// time. Its monotonic clock goes on as before, as that of a machine whose date
// is set. A step survives a Restart.
func (s *Server) StepClock(d time.Duration) {
	s.tb.Helper()
	if s.clock == nil {
		s.tb.Fatalf("redistest: StepClock needs the option Faketime")
	}
	if err := s.clock.step(d); err != nil {
		s.tb.Fatalf("redistest: StepClock(%v): %v", d, err)
	}
}

// SetClockRate has the wall clock of a server with Faketime run rate times as
// fast from now on, without a step; 0 freezes it, 1 is normal again. A Restart
// goes back to rate 1.
func (s *Server) SetClockRate(rate float64) {
	s.tb.Helper()
	if s.clock == nil {
		s.tb.Fatalf("redistest: SetClockRate needs the option Faketime")
	}
	if err := s.clock.setRate(rate); err != nil {
		s.tb.Fatalf("redistest: SetClockRate(%v): %v", rate, err)
	}
}

// Time returns the server's own time, to the microsecond.
func (s *Server) Time() time.Time {
	s.tb.Helper()
	now, err := s.time()
	if err != nil {
		s.tb.Fatalf("redistest: TIME at %s: %v", s.Addr(), err)
	}
	return now
}

func (s *Server) time() (time.Time, error) {
	parts, err := redis.Int64s(s.Do("TIME"))
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}

// ExpiryOf returns when a key ends by the server's own time, to a few milliseconds; zero
// if the key is not stored, or has no end. PEXPIRETIME, which knows it to the
// millisecond, is younger than the oldest server that the tests run on.
func (s *Server) ExpiryOf(key string) time.Time {
	s.tb.Helper()
	parts, err := redis.Int64s(s.Do("EVAL", `
		local left = redis.call('pttl', KEYS[1])
		local now = redis.call('time')
		return {left, now[1] * 1000 + math.floor(now[2] / 1000)}`, 1, key))
	if err != nil {
		s.tb.Fatalf("redistest: when %q ends at %s: %v", key, s.Addr(), err)
	}
	if parts[0] < 0 {
		return time.Time{}
	}
	return time.UnixMilli(parts[0] + parts[1])
}

// fakeClock steers libfaketime in a running process through a file that it
// reads at every look at the clock. The process then sees
//
//	birth + rate*(now-birth) + offset
//
// where birth is the moment when the library was loaded.
type fakeClock struct {
	file, library string

	birth  time.Time
	rate   float64
	offset time.Duration
}

func newFakeClock(file, library string) *fakeClock {
	return &fakeClock{file: file, library: library, birth: time.Now(), rate: 1}
}

func (c *fakeClock) shown(now time.Time) time.Time {
	return c.birth.Add(time.Duration(c.rate*float64(now.Sub(c.birth))) + c.offset)
}

func (c *fakeClock) step(d time.Duration) error {
	c.offset += d
	return c.write()
}

func (c *fakeClock) setRate(rate float64) error {
	if !(rate >= 0 && rate <= 1e6) {
		return errors.New("want a rate from 0 to 1e6")
	}
	now := time.Now()
	before := c.shown(now)
	c.rate = rate
	c.offset += before.Sub(c.shown(now))
	return c.write()
}

// write replaces the file in one step: a clock that reads half of it jumps.
func (c *fakeClock) write() error {
	text := fmt.Sprintf("%+.9f x%.9f\n", c.offset.Seconds(), c.rate)
	if err := os.WriteFile(c.file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(c.file+".new", c.file)
}

// prepare returns the environment for a new process, whose clock goes on from
// where the last one's is. The C library is preloaded too because redis-server's
// jemalloc asks for the time before libfaketime is ready.
func (c *fakeClock) prepare() ([]string, error) {
	libc, err := filepath.Glob("/lib/" + filepath.Base(filepath.Dir(filepath.Dir(c.library))) + "/libc.so.6")
	if err != nil || len(libc) == 0 {
		return nil, errors.New("Faketime: no libc.so.6 beside " + c.library)
	}
	if err := c.setRate(1); err != nil {
		return nil, err
	}
	return []string{
		"LD_PRELOAD=" + c.library + " " + libc[0],
		"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_TIMESTAMP_FILE=" + c.file,
	}, nil
}

// calibrate finds birth: at rate 2 a clock is ahead by its age. The process is
// so young that it does not matter. A reading is as good as its round trip is short, and on a
// busy machine one may take longer than the process is old: the shortest counts.
func (c *fakeClock) calibrate(read func() (time.Time, error)) error {
	c.rate = 2
	if err := c.write(); err != nil {
		return err
	}
	best, age := time.Duration(math.MaxInt64), time.Duration(0)
	for i := 0; i < someReadings && best > goodReading || age <= best; i++ {
		asked := time.Now()
		shown, err := read()
		if err != nil {
			return err
		}
		took := time.Since(asked)
		if took < best || age <= best {
			now := asked.Add(took / 2)
			best, age = took, shown.Sub(now)-c.offset
			c.birth = now.Add(-age)
		}
		if i == maxReadings || age > startTimeout+callTimeout {
			return fmt.Errorf("Faketime: %s has no effect: the clock is ahead by %v at double rate", c.library, age)
		}
	}
	c.rate = 1
	return c.write()
}

// A reading of goodReading is good enough, and so is the best of someReadings if it is
// certainly of a clock that runs ahead. After maxReadings none is.
const (
	goodReading  = time.Millisecond
	someReadings = 50
	maxReadings  = 1000
)

func findFaketime() (string, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(found) == 0 {
		return "", errors.New("redistest: Faketime: libfaketime is not installed: run make test, which installs it, or apt-get install libfaketime")
	}
	return found[0], nil
}

// forgetFaketime removes what libfaketime leaves in shared memory when its
// process is killed.
func forgetFaketime(pid int) {
	os.Remove(fmt.Sprintf("/dev/shm/faketime_shm_%d", pid))
	os.Remove(fmt.Sprintf("/dev/shm/sem.faketime_sem_%d", pid))
}
