package redistest

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// What the environment says of every server: its program, and how often it writes
// its append-only file to the disk. A test that asks for no persistence still finds
// nothing after a restart.
const (
	serverVariable = "REDISTEST_SERVER"      // redis-server if it is not set; none: tests that need one are skipped
	fsyncVariable  = "REDISTEST_APPENDFSYNC" // always, everysec or no; no file if it is not set
)

const noServer = "none"

// Option is a setting of a server.
type Option func(*config)

// AOF keeps every write over a kill: append-only file, fsync always.
func AOF() Option { return func(c *config) { c.aof = true } }

// Snapshots keeps what SAVE or BGSAVE wrote, and only that, over a kill. The
// file is dump.rdb in Dir.
func Snapshots() Option { return func(c *config) { c.snapshots = true } }

// Password is asked of clients that give no user name.
func Password(password string) Option { return func(c *config) { c.password = password } }

// User adds an ACL user, with all rights unless rules such as "~lock:*" and
// "+@read" are given, and turns off the default user: a client without
// credentials may do nothing.
func User(name, password string, rules ...string) Option {
	return func(c *config) { c.users = append(c.users, user{name, password, rules}) }
}

// TLS has the server speak only TLS. TLSConfig is for its clients.
func TLS() Option { return func(c *config) { c.tls = true } }

// UnixSocket has the server listen only on a unix domain socket.
func UnixSocket() Option { return func(c *config) { c.unixSocket = true } }

// Faketime gives the server a wall clock that StepClock and SetClockRate move.
// It needs libfaketime (Debian: apt-get install libfaketime).
func Faketime() Option { return func(c *config) { c.faketime = "wanted" } }

// Config adds a directive of redis.conf. It overrides what this package sets.
func Config(name string, values ...string) Option {
	return func(c *config) { c.extra = append(c.extra, append(directive{name}, values...)) }
}

// Debug allows the command DEBUG, which Redis 7 and later forbid without a directive that
// older servers do not know.
func Debug() Option { return func(c *config) { c.debug = true } }

// adminName is the user of Do and Dial on a server that asks for credentials.
const adminName = "redistest"

type config struct {
	binary          string
	reserve         func() (*loopback.Port, error)
	aof, snapshots  bool
	tls, unixSocket bool
	debug           bool
	password        string
	users           []user
	adminPassword   string
	faketime        string // the library's path; "wanted" until it is looked up
	extra           []directive
}

type user struct {
	name, password string
	rules          []string
}

// directive is one line of redis.conf: a name and its values.
type directive []string

func newConfig(opts []Option) (config, error) {
	c := config{reserve: loopback.Reserve, adminPassword: rand.Text()}
	for _, opt := range opts {
		opt(&c)
	}
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("redistest: %w", err)
	}
	return c, c.find()
}

func (c *config) validate() error {
	if c.tls && c.unixSocket {
		return errors.New("TLS and UnixSocket exclude each other: Redis speaks TLS over TCP only")
	}
	if c.password != "" && len(c.users) > 0 {
		return errors.New("Password and User exclude each other: the password is the default user's, which User turns off")
	}
	for _, u := range c.users {
		if u.name == "" || u.name == "default" || u.name == adminName || u.password == "" {
			return fmt.Errorf("User(%q, %q): want a password and a name that is neither default nor %s", u.name, u.password, adminName)
		}
	}
	return nil
}

// find looks up what must be installed.
func (c *config) find() (err error) {
	name := cmp.Or(os.Getenv(serverVariable), "redis-server")
	if c.binary, err = exec.LookPath(name); err != nil {
		return fmt.Errorf("redistest: %s is not installed: run make test, which installs redis-server, or apt-get install %[1]s", name)
	}
	if c.faketime != "" {
		if c.faketime, err = findFaketime(); err != nil {
			return err
		}
	}
	if c.debug {
		said, err := exec.Command(c.binary, "--version").Output()
		if err != nil {
			return fmt.Errorf("redistest: %s --version: %w", name, err)
		}
		if _, version, _ := strings.Cut(string(said), " v="); version == "" || version[0] > '6' || version[1] != '.' {
			c.extra = append(c.extra, directive{"enable-debug-command", "yes"})
		}
	}
	return nil
}

func (c *config) persistent() bool { return c.aof || c.snapshots }

func (c *config) secured() bool { return c.password != "" || len(c.users) > 0 }

// userinfo is what a client of the configured server logs in with.
func (c *config) userinfo() *url.Userinfo {
	switch {
	case len(c.users) > 0:
		return url.UserPassword(c.users[0].name, c.users[0].password)
	case c.password != "":
		return url.UserPassword("", c.password)
	}
	return nil
}

// write writes redis.conf and the files that it names.
func (c *config) write(s *Server) error {
	lines := []directive{
		{"bind", "127.0.0.1"}, {"port", strconv.Itoa(s.port.Number())},
		{"loglevel", "warning"},
		{"save", ""},
		{"repl-diskless-sync-delay", "0"}, // a replica need not wait for others to come
	}
	fsync := os.Getenv(fsyncVariable)
	switch {
	case c.aof:
		fsync = "always"
	case c.snapshots: // which a server with a file does not load
		fsync = ""
	}
	if fsync != "" {
		lines = append(lines, directive{"appendonly", "yes"}, directive{"appendfsync", fsync})
	}
	if c.unixSocket {
		lines = append(lines, directive{"port", "0"}, directive{"unixsocket", s.Addr()})
	}
	if c.tls {
		files, err := writeCertificates(s.home)
		if err != nil {
			return err
		}
		lines = append(lines, directive{"port", "0"}, directive{"tls-port", strconv.Itoa(s.port.Number())})
		lines = append(lines, files...)
	}
	lines = append(lines, c.access()...)
	return os.WriteFile(s.path("redis.conf"), render(append(lines, c.extra...)), 0o600)
}

func (c *config) access() (lines []directive) {
	if c.password != "" {
		lines = append(lines, directive{"requirepass", c.password})
	}
	for _, u := range c.users {
		line := directive{"user", u.name, "on", ">" + u.password}
		if len(u.rules) == 0 {
			u.rules = []string{"allkeys", "allchannels", "allcommands"}
		}
		lines = append(lines, append(line, u.rules...))
	}
	if len(c.users) > 0 {
		lines = append(lines, directive{"user", "default", "off"})
	}
	if c.secured() {
		lines = append(lines, directive{"user", adminName, "on", ">" + c.adminPassword, "allkeys", "allchannels", "allcommands"})
	}
	return lines
}

func render(lines []directive) []byte {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line[0])
		for _, value := range line[1:] {
			fmt.Fprintf(&b, " %q", value)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}
