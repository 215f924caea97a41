package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limit asks the masters for pairs in deep pipelines over one bare connection
// each: what the servers can do at most on this
// machine, whoever asks.
func Limit() Workload {
	return Workload{
		Name: "limit", Title: "pairs in bare pipelines",
		Run: func(ctx context.Context, t *Trial) error { return t.limit() },
	}
}

// Bare is the subject of Limit.
func Bare(nodes int) Subject { return Subject{Name: on("bare pipeline", nodes), Nodes: nodes} }

// depth is how many pairs are sent before the answers are read.
const depth = 500

func (t *Trial) limit() error {
	from := t.read()
	var all sync.WaitGroup
	pairs, errs := make([]int64, len(t.Masters)), make([]error, len(t.Masters))
	for i, m := range t.Masters {
		all.Go(func() { pairs[i], errs[i] = t.pump(m.URL()) })
	}
	all.Wait()
	to := t.read()
	// A quorum lock is as fast as the slowest master.
	least := pairs[0]
	for i, n := range pairs {
		if errs[i] != nil {
			return errs[i]
		}
		least = min(least, n)
	}
	t.cost(from, to, least)
	return nil
}

// pump sends batches of pairs for the trial's length and returns how many were
// answered.
func (t *Trial) pump(url string) (pairs int64, err error) {
	addr := strings.TrimPrefix(url, "redis://")
	if strings.ContainsAny(addr, "/@") {
		return 0, fmt.Errorf("not measured: only with plain TCP addresses, not %s", url)
	}
	if err := loadRelease(url); err != nil {
		return 0, err
	}
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	batch := []byte(strings.Repeat(t.onePair(), depth))
	answers := bufio.NewReaderSize(raw, 1<<16)
	for end := time.Now().Add(t.Length); time.Now().Before(end); pairs += depth {
		if _, err := raw.Write(batch); err != nil {
			return pairs, err
		}
		for range 2 * depth {
			line, err := answers.ReadSlice('\n')
			if err != nil {
				return pairs, err
			}
			if line[0] == '-' {
				return pairs, fmt.Errorf("%s answered %q", url, line)
			}
		}
	}
	return pairs, nil
}

func loadRelease(url string) error {
	conn, err := dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	return releaseScript.Load(conn)
}

// onePair is the text of SET NX PX and the release script.
func (t *Trial) onePair() string { return t.acquireText() + t.releaseText() }

func (t *Trial) acquireText() string {
	return requestText("SET", t.Prefix+"one", redigoValue, "NX", "PX", "30000")
}

func (t *Trial) releaseText() string {
	return requestText("EVALSHA", releaseScript.Hash(), "1", t.Prefix+"one", redigoValue)
}

func requestText(args ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return text
}

// Floor makes round trips to all masters from one thread, with blocking system
// calls and nothing else: send to each, then read from each. It is what one
// caller could reach at most if a library cost nothing.
func Floor() Workload {
	return Workload{
		Name: "floor", Title: "one caller with bare system calls, every answer awaited",
		Run: func(ctx context.Context, t *Trial) error { return t.floor(ctx) },
	}
}

// BareCalls is the subject of Floor.
func BareCalls(nodes int) Subject { return Subject{Name: on("bare calls", nodes), Nodes: nodes} }

func (t *Trial) floor(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	acquire, release := []byte(t.acquireText()), []byte(t.releaseText())
	var fds []int
	for _, m := range t.Masters {
		if err := loadRelease(m.URL()); err != nil {
			return err
		}
		raw, err := net.Dial("tcp", strings.TrimPrefix(m.URL(), "redis://"))
		if err != nil {
			return err
		}
		defer raw.Close()
		file, err := raw.(*net.TCPConn).File() // blocking, unlike the connection
		if err != nil {
			return err
		}
		defer file.Close()
		fds = append(fds, int(file.Fd()))
	}
	h := newHistogram()
	from := t.read()
	for began := from.at; began.Sub(from.at) < t.Length && ctx.Err() == nil; {
		if err := errors.Join(roundTrip(fds, acquire, "+OK\r\n"), roundTrip(fds, release, ":1\r\n")); err != nil {
			return err
		}
		now := time.Now()
		record(h, now.Sub(began))
		began = now
	}
	t.cost(from, t.read(), h.TotalCount())
	t.latencies("", h)
	return nil
}

// roundTrip sends a request to every master and then reads every answer, which
// is so short that it comes in one piece.
func roundTrip(fds []int, request []byte, want string) error {
	for _, fd := range fds {
		if _, err := syscall.Write(fd, request); err != nil {
			return err
		}
	}
	var answer [64]byte
	for _, fd := range fds {
		n, err := syscall.Read(fd, answer[:])
		if err != nil {
			return err
		}
		if string(answer[:n]) != want {
			return fmt.Errorf("a master answered %q, want %q", answer[:n], want)
		}
	}
	return nil
}
