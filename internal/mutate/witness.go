package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// witness is a run that should notice a break.
type witness struct {
	name string
	// look tells what the witness noticed in a broken tree; empty: nothing.
	look func(t *tree, b *Break) (string, error)
}

// patience is how long a witness may look. Broken code may wait without end.
const patience = 10 * time.Minute

// simulator runs schedules until one breaks a promise.
func simulator(seeds int) witness {
	return witness{"simulator", func(t *tree, _ *Break) (string, error) {
		out, err := t.run(patience, t.command(), "simulate", "--fail-fast", "--seeds", strconv.Itoa(seeds), "--json")
		switch {
		case err == nil || hung(err):
			return outcome(err), nil
		case misused(err):
			return "", fmt.Errorf("redlab simulate --fail-fast: %s", out)
		}
		var r struct {
			Seed     uint64 `json:"seed"`
			Failures []struct {
				Seed       uint64 `json:"seed"`
				Violations []struct {
					Kind string `json:"kind"`
				} `json:"violations"`
			} `json:"failures"`
		}
		begin := max(0, bytes.IndexByte(out, '{'))
		if json.NewDecoder(bytes.NewReader(out[begin:])).Decode(&r) != nil || len(r.Failures) == 0 {
			return crash(out), nil
		}
		first := r.Failures[0]
		return fmt.Sprintf("%s in seed %d", first.Violations[0].Kind, first.Seed-r.Seed+1), nil
	}}
}

// explored is how many orders of each small world are tried for one break, so that
// all worlds together take a minute.
const explored = 5_000

// explorer tries the orders of small worlds until one breaks a promise.
func explorer() witness {
	return witness{"explore", func(t *tree, _ *Break) (string, error) {
		out, err := t.run(patience, t.command(), "simulate", "--explore", "--bound", "0", "--fail-fast", "--runs", strconv.Itoa(explored))
		switch {
		case err == nil || hung(err):
			return outcome(err), nil
		case misused(err):
			return "", fmt.Errorf("redlab simulate --explore: %s", out)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 5 && f[5] == "UNSAFE:" {
				return fmt.Sprintf("%s, run %s", f[0], f[1]), nil
			}
		}
		return crash(out), nil
	}}
}

// tests runs the tests of the package that the break is in, and with node and redlock those
// of the packages below.
func tests() witness {
	return witness{"tests", func(t *tree, b *Break) (string, error) {
		pkg := "./" + filepath.Dir(b.File)
		if top, _, _ := strings.Cut(b.File, "/"); top == "node" || top == "redlock" {
			pkg = "./" + top + "/..."
		}
		out, err := t.run(patience, "go", "test", "-trimpath", "-vet=off", "-failfast", "-timeout", "5m", pkg)
		switch {
		case err == nil || hung(err):
			return outcome(err), nil
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			return "", b.wrong(fmt.Errorf("the tests do not compile:\n%s", out))
		}
		for line := range strings.Lines(string(out)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
				name, _, _ = strings.Cut(name, " ")
				return name, nil
			}
		}
		return crash(out), nil
	}}
}

// run runs a program in the tree, in a process group of its own that ends with
// it.
func (t *tree) run(patience time.Duration, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}

func hung(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// misused reports whether a command did not understand its arguments, which
// gives no verdict.
func misused(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 64
}

func outcome(err error) string {
	if err != nil {
		return "it hangs"
	}
	return ""
}

// crash is what a program said that came to no verdict.
func crash(out []byte) string {
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return fmt.Sprintf("%.60s", line)
		}
	}
	if strings.Contains(string(out), "panic:") {
		return "panic"
	}
	return "it fails"
}
