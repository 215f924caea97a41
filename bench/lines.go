package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
)

// lines are links of any length to the masters, in a process of their own: what
// they cost is not the client's. It gets a processor before others do, where
// that is allowed, because a network does not wait for one.
type lines struct {
	*process
	urls []string // of the masters, through the lines
}

// ServeLines is what that process does until its standard input ends. It runs a line
// to each target and prints their addresses. Then it reads rows of durations and sets
// the delays, one way, to each of them.
func ServeLines(targets []string, stdin io.Reader, stdout io.Writer) error {
	// Garbage is a few bytes for each command; a collection would delay them.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(256 << 20)
	carrier, err := faultproxy.NewCarrier()
	if err != nil {
		return err
	}
	defer carrier.Close()
	var all []*faultproxy.Line
	var addrs []string
	defer func() {
		for _, line := range all {
			line.Close()
		}
	}()
	for _, target := range targets {
		line, err := faultproxy.RunLine(carrier, target)
		if err != nil {
			return err
		}
		all, addrs = append(all, line), append(addrs, line.Addr())
	}
	fmt.Fprintln(stdout, strings.Join(addrs, " "))
	for rows := bufio.NewScanner(stdin); rows.Scan(); fmt.Fprintln(stdout, "set") {
		for i, text := range strings.Fields(rows.Text()) {
			delay, err := time.ParseDuration(text)
			if err != nil || i >= len(all) {
				return fmt.Errorf("%d lines: cannot set %q", len(all), rows.Text())
			}
			all[i].SetDelay(delay)
		}
	}
	return nil
}

// Extend puts a line in front of every master, for workloads at a distance. The
// lines are this program again, with argv, which is expected to call ServeLines
// with the addresses that are added.
func (m *Masters) Extend(argv ...string) error {
	var targets []string
	for _, master := range m.all {
		target, _, err := throughLine(master.URL(), "")
		if err != nil {
			return err
		}
		targets = append(targets, target)
	}
	argv, err := ourselves(argv, targets...)
	if err != nil {
		return err
	}
	if nice, err := exec.LookPath("nice"); err == nil {
		argv = append([]string{nice, "-n", "-10"}, argv...) // where that is not allowed it goes on without
	}
	process, said, err := startChild(argv, "GOMAXPROCS=1")
	if err != nil {
		return fmt.Errorf("start the delay lines: %w", err)
	}
	m.lines = &lines{process: process}
	addrs := strings.Fields(said)
	if len(addrs) != len(targets) {
		return fmt.Errorf("start the delay lines: %d addresses for %d masters: %q", len(addrs), len(targets), said)
	}
	for i, master := range m.all {
		_, through, _ := throughLine(master.URL(), addrs[i])
		m.lines.urls = append(m.lines.urls, through)
	}
	return nil
}

// throughLine takes the host:port out of an address and returns it, and the
// address with that of a line in its place.
func throughLine(address, line string) (target, through string, err error) {
	if !strings.Contains(address, "://") {
		return address, line, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errors.New("a master's address cannot be read") // it may have a password
	}
	if u.Scheme != "redis" {
		return "", "", fmt.Errorf("%s://%s: a distance can be measured only with plain TCP addresses", u.Scheme, u.Host)
	}
	target = u.Host
	if u.Port() == "" {
		target += ":6379"
	}
	u.Host = line
	return target, u.String(), nil
}

// stretch sets the delays, one way.
func (l *lines) stretch(delays []time.Duration) error {
	var row strings.Builder
	for _, d := range delays {
		fmt.Fprint(&row, d, " ")
	}
	if _, err := fmt.Fprintln(l.input, row.String()); err != nil {
		return fmt.Errorf("set the delay lines: %w", err)
	}
	if said, err := l.hear(); err != nil || said != "set" {
		return errors.Join(fmt.Errorf("set the delay lines: they said %q", said), err)
	}
	return nil
}
