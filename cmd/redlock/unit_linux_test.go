package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/loopback"
)

// systemd are the files of examples/systemd.
func systemd(t *testing.T, name string) string {
	t.Helper()
	return clitest.Read(t, filepath.Join(clitest.Tree, "examples", "systemd", name))
}

// Three masters that are started by the command of the systemd unit listen where they
// should, let nobody in without the password, and have nothing that doctor warns of.
func TestThe_systemd_unit_starts_a_safe_master(t *testing.T) {
	t.Parallel()
	unit := systemd(t, "redis-lock@.service")
	var nodes []string
	for range 3 {
		nodes = append(nodes, startUnit(t, unit))
	}
	for _, addr := range nodes {
		mustBeShut(t, addr)
	}
	for _, test := range []struct {
		user string
		args []string
	}{
		{"operator", []string{"init"}},
		{"operator", []string{"doctor", "--node-timeout", "10s"}},
		{"locks", []string{"run", "--wait", "10s", "name", "--", "true"}},
		{"operator", []string{"status"}},
	} {
		file := filepath.Join(t.TempDir(), "password")
		clitest.Must(t, os.WriteFile(file, []byte("the password of "+test.user+"\n"), 0o600))
		args := append([]string{test.args[0], "--nodes", strings.Join(nodes, ","), "--user", test.user, "--password-file", file}, test.args[1:]...)
		c := clitest.New(t, args...)
		c.Begin().WantExit(0)
		for _, worse := range []string{"warning", "critical"} {
			if strings.Contains(c.Out.String(), worse) {
				t.Errorf("%s finds something:\n%s", test.args[0], &c.Out)
			}
		}
	}
}

// mustBeShut checks that a master listens on the loopback address alone, and does nothing
// for a client without the password.
func mustBeShut(t *testing.T, addr string) {
	t.Helper()
	c, err := redis.Dial("tcp", addr)
	clitest.Must(t, err)
	defer c.Close()
	for _, command := range [][]any{{"GET", "x"}, {"SET", "x", "y"}, {"CONFIG", "GET", "dir"}, {"AUTH", "x"}, {"AUTH", "locks", "LOCKS-SHA256"}} {
		_, err := c.Do(command[0].(string), command[1:]...)
		if err == nil || !strings.Contains(err.Error(), "NOAUTH") && !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("without a password, %q: %v", command, err)
		}
	}
	_, port, _ := strings.Cut(addr, ":")
	number, _ := strconv.Atoi(port)
	listening, err := os.ReadFile("/proc/net/tcp")
	clitest.Must(t, err)
	if open := fmt.Sprintf(" 00000000:%04X ", number); bytes.Contains(listening, []byte(open)) {
		t.Errorf("%s listens on every address", addr)
	}
}

// startUnit starts redis-server with the very command of the unit, and returns its address.
func startUnit(t *testing.T, unit string) string {
	t.Helper()
	port, err := loopback.Reserve()
	clitest.Must(t, err)
	t.Cleanup(func() { port.Close() })
	dir := t.TempDir()
	users := systemd(t, "users.acl")
	for _, user := range []string{"locks", "operator"} {
		sum := sha256.Sum256([]byte("the password of " + user))
		users = strings.ReplaceAll(users, strings.ToUpper(user)+"-SHA256", hex.EncodeToString(sum[:]))
	}
	clitest.Must(t, os.WriteFile(filepath.Join(dir, "users.acl"), []byte(users), 0o600))

	set := map[string]string{}
	for line := range strings.Lines(unit) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			set[name] += value
		}
	}
	bind, ok := strings.CutPrefix(set["Environment"], "BIND=")
	if !ok || set["LoadCredential"] != "users.acl:/etc/redis-lock/users.acl" {
		t.Fatalf("Environment=%s, LoadCredential=%s", set["Environment"], set["LoadCredential"])
	}
	words := strings.Fields(strings.NewReplacer("$BIND", bind, "${CREDENTIALS_DIRECTORY}", dir,
		"/var/lib/"+set["StateDirectory"], dir, "%i", strconv.Itoa(port.Number())).Replace(set["ExecStart"]))
	if words[0] != "/usr/bin/redis-server" {
		t.Fatalf("it runs %s, want redis-server", words[0])
	}
	i := slices.Index(words, "systemd")
	words[i] = "no" // nobody listens for its notification here

	runtime.LockOSThread() // the thread that starts it is its parent
	t.Cleanup(runtime.UnlockOSThread)
	server := exec.Command(cmp.Or(os.Getenv("REDISTEST_SERVER"), "redis-server"), words[1:]...)
	server.Dir, server.SysProcAttr = dir, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	server.Stdout = &log
	clitest.Must(t, server.Start())
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
		if t.Failed() {
			t.Logf("%s: %s", port.Addr(), &log)
		}
	})
	if !clitest.Eventually(30*time.Second, func() bool {
		c, err := redis.Dial("tcp", port.Addr())
		if err == nil {
			c.Close()
		}
		return err == nil
	}) {
		t.Fatalf("it does not start: %q", words)
	}
	return port.Addr()
}

// The users of the unit have the rights of docs/permissions.md, without a prefix, and no
// more.
func TestThe_systemd_users_have_the_documented_rights(t *testing.T) {
	rights := documentedRights(t)
	for i, rule := range rights {
		if rule == "~app:*" {
			rights[i] = "~*"
		}
		rights[i] = strings.Replace(rights[i], "&app:", "&", 1)
	}
	more := strings.Fields(clitest.Between(t, clitest.Read(t, clitest.Tree+"/docs/permissions.md"), "beside them:\n\n```\n", "```"))
	want := []string{
		"user default off",
		"user locks on #LOCKS-SHA256 " + strings.Join(rights, " "),
		"user operator on #OPERATOR-SHA256 " + strings.Join(append(rights, more...), " "),
	}
	if got := strings.TrimSpace(systemd(t, "users.acl")); got != strings.Join(want, "\n") {
		t.Errorf("users.acl has\n%s\nwant, as docs/permissions.md says,\n%s", got, strings.Join(want, "\n"))
	}
}
