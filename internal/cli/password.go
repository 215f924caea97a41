package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
)

// Credentials returns what logs in, or nil if no flag says how. A password from a file is
// read now, to see that it can be read, and at every connection, because it may change.
func (m *Masters) Credentials() (func(context.Context, string) (node.Credentials, error), error) {
	switch {
	case m.passwordFile != "" && m.passwordCommand != "":
		return nil, Usage("--password-file and --password-command: must not be given together")
	case m.passwordCommand != "":
		return m.fromCommand, nil
	case m.passwordFile == "" && m.user != "":
		return nil, Usage("--user %s: needs --password-file or --password-command", Plain(m.user))
	case m.passwordFile == "":
		return nil, nil
	}
	read := func() (string, error) {
		b, err := os.ReadFile(m.passwordFile)
		return strings.TrimRight(string(b), "\r\n"), err
	}
	password, err := read()
	switch {
	case err != nil:
		return nil, Usage("--password-file: %w", err)
	case password == "":
		return nil, Usage("--password-file %s: must not be empty", m.passwordFile)
	case strings.ContainsAny(password, "\r\n"):
		return nil, Usage("--password-file %s: must have one line", m.passwordFile)
	}
	return func(context.Context, string) (node.Credentials, error) {
		password, err := read()
		return node.Credentials{User: m.user, Password: password}, err
	}, nil
}

// MasterEnv tells the command of --password-command which master its password is for.
const MasterEnv = "REDLOCK_MASTER"

// fromCommand runs the command of --password-command.
func (m *Masters) fromCommand(ctx context.Context, addr string) (node.Credentials, error) {
	shell := []string{"sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/C"}
	}
	cmd := exec.CommandContext(ctx, shell[0], shell[1], m.passwordCommand)
	cmd.Env = append(os.Environ(), MasterEnv+"="+addr)
	endWhole(cmd)
	cmd.WaitDelay = 100 * time.Millisecond // its own child processes may keep its output open
	var written, complaint output
	cmd.Stdout, cmd.Stderr = &written, &complaint
	err := cmd.Run()
	go reap(cmd)
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		line, _, _ := strings.Cut(complaint.said.String(), "\n")
		return node.Credentials{}, fmt.Errorf("--password-command: %s", Plain(cmp.Or(errorOf(ctx), err.Error())+suffix(line)))
	}
	if written.more {
		return node.Credentials{}, fmt.Errorf("--password-command: more than %d bytes of output", maxOutput)
	}
	c, err := passwordOf(written.said.String())
	c.User = m.user
	return c, err
}

// errorOf is why ctx has ended, if it has.
func errorOf(ctx context.Context) string {
	if ctx.Err() == nil {
		return ""
	}
	return context.Cause(ctx).Error()
}

// maxComplaint bounds how much is shown of what the command has complained of.
const maxComplaint = 300

func suffix(line string) string {
	switch line = strings.TrimSpace(line); {
	case line == "":
		return ""
	case len(line) > maxComplaint:
		line = line[:maxComplaint] + "..."
	}
	return ": " + line
}

// passwordOf reads what the command has said. Its errors quote nothing of that.
func passwordOf(said string) (node.Credentials, error) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(said, "\r\n", "\n"), "\n"), "\n")
	c := node.Credentials{Password: lines[0]}
	if c.Password == "" {
		return node.Credentials{}, errors.New("--password-command: the first line of its output must be the password, and is empty")
	}
	if len(lines) > 2 {
		return node.Credentials{}, fmt.Errorf("--password-command: %d lines of output: must be one or two", len(lines))
	}
	if len(lines) == 2 {
		var err error
		if c.Expires, err = time.Parse(time.RFC3339, strings.TrimSpace(lines[1])); err != nil {
			return node.Credentials{}, errors.New("--password-command: the second line of its output must be when the password expires, as 2006-01-02T15:04:05Z (RFC 3339)")
		}
	}
	return c, nil
}

// output is what a command says, up to a bound.
type output struct {
	said bytes.Buffer
	more bool // than the bound
}

const maxOutput = 64 << 10

// Write takes all, so that the command ends as it would.
func (o *output) Write(b []byte) (int, error) {
	kept := b[:min(len(b), maxOutput-o.said.Len())]
	o.said.Write(kept)
	o.more = o.more || len(kept) < len(b)
	return len(b), nil
}
