package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/redlock"
)

// Masters are the flags that say which masters to ask, and how.
type Masters struct {
	Nodes       []string
	NodeTimeout time.Duration
	Prefix      string
	Group       string

	user            string
	passwordFile    string
	passwordCommand string
	tlsCA           string
	tlsCert         string
	tlsKey          string

	Notices *Notices // of the client that was dialled last
}

// ConnectPatience is how long a quorum of connections may take if we may not wait for
// anything.
const ConnectPatience = 5 * time.Second

// commandPatience is how long a client lets the command of --password-command run.
const commandPatience = 10 * time.Second

// Patience is ConnectPatience, and what --password-command may take before it.
func (m *Masters) Patience() time.Duration {
	if m.passwordCommand == "" {
		return ConnectPatience
	}
	return commandPatience + ConnectPatience
}

const AboutSecrets = `A password in --nodes can be read in the list of processes, and one in
REDLOCK_NODES is inherited by whatever is started. Write it to a file that only
you can read, and name that in --password-file; or name a program that fetches
it in --password-command.`

func (m *Masters) Register(flags *pflag.FlagSet, nodeTimeout time.Duration) {
	flags.StringArrayVar(&m.Nodes, "nodes", nil, "the `masters`, separated by commas: host:port, redis://user:password@host:port/db, rediss://... for TLS, unix:///path. Those of several groups: a=host:port,host:port,b=host:port,...")
	flags.DurationVar(&m.NodeTimeout, "node-timeout", nodeTimeout, "how long one master may take to answer")
	flags.StringVar(&m.Prefix, "prefix", "", "what every key begins with")
	flags.StringVar(&m.Group, "group", "", "the `name` of the group of masters, if its clients have one (WithGroup); of several groups, the one that is meant")
	flags.StringVar(&m.user, "user", "", "the ACL user, with --password-file or --password-command")
	flags.StringVar(&m.passwordFile, "password-file", "", "the `file` that holds the password of all masters whose address has none; it is read at every connection")
	flags.StringVar(&m.passwordCommand, "password-command", "", "a `command` of the shell that writes that password; a second line is when it expires (RFC 3339). It is run for every login, "+
		"with the master in $"+MasterEnv+", and has ten seconds")
	flags.StringVar(&m.tlsCA, "tls-ca", "", "the `file` of certificates that sign those of the masters (PEM), instead of the system's")
	flags.StringVar(&m.tlsCert, "tls-cert", "", "the `file` of our certificate (PEM), with --tls-key")
	flags.StringVar(&m.tlsKey, "tls-key", "", "the `file` of its key (PEM)")
}

// Addresses returns the masters, those of --group where --nodes gives several groups, or an error
// that says how to name them. It quotes none of them: each may hold a password.
func (m *Masters) Addresses() ([]string, error) {
	groups, err := m.Groups()
	if err != nil {
		return nil, err
	}
	if groups == nil {
		return m.given(), nil
	}
	names := slices.Sorted(maps.Keys(groups))
	if m.Group == "" && len(names) > 1 {
		return nil, Usage("--nodes gives the groups %s, and this command is about one of them: choose it with --group", Enumerated(names))
	}
	addrs, found := groups[cmp.Or(m.Group, names[0])]
	if !found {
		return nil, Usage("--group %q: must be one of the groups that --nodes gives, %s", m.Group, Enumerated(names))
	}
	return addrs, nil
}

// Groups returns the masters of each group, and nil if --nodes names no group.
func (m *Masters) Groups() (map[string][]string, error) {
	all := m.given()
	if err := m.check(all); err != nil || !m.Grouped() {
		return nil, err
	}
	groups, group := map[string][]string{}, ""
	for i, addr := range all {
		name, first, begins := strings.Cut(addr, "=")
		switch begins = begins && isGroup(name); {
		case !begins && group == "":
			return nil, Usage("--nodes: address %d of %d: must have its group before it, as others do: a=host:port", i+1, len(all))
		case !begins:
			groups[group] = append(groups[group], addr)
			continue
		case groups[name] != nil:
			return nil, Usage("--nodes: group %q: is given twice", name)
		case first == "":
			return nil, Usage("--nodes: group %q: must have a master behind its =", name)
		}
		if err := spread.Check([]string{name}); err != nil {
			return nil, Usage("--nodes: %w", err)
		}
		group, groups[name] = name, []string{first}
	}
	return groups, nil
}

// Grouped reports whether --nodes names groups.
func (m *Masters) Grouped() bool {
	return slices.ContainsFunc(m.given(), func(addr string) bool {
		name, _, found := strings.Cut(addr, "=")
		return found && isGroup(name)
	})
}

// isGroup tells the name of a group from the beginning of an address.
func isGroup(name string) bool { return !strings.ContainsAny(name, ":/@") }

// given are the addresses, each group's first with the group before it.
func (m *Masters) given() (addrs []string) {
	for _, addr := range strings.Split(strings.Join(m.Nodes, ","), ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

func (m *Masters) check(addrs []string) error {
	if m.NodeTimeout < time.Millisecond {
		return Usage("--node-timeout %v: must be at least 1ms", m.NodeTimeout)
	}
	if len(addrs) == 0 {
		return Usage("no masters given: use --nodes a:6379,b:6379,c:6379 or set %s to the same; "+
			"five that are independent of each other are advised (redlab demo needs none)", variable("nodes"))
	}
	for i, addr := range addrs {
		if strings.Contains(addr, "@") && !strings.Contains(addr, "://") {
			return Usage("--nodes: address %d of %d has an @ but no redis:// before it; "+
				"a comma in a password is written %%2C", i+1, len(addrs))
		}
	}
	return nil
}

// Dial connects to a quorum of the masters. Warnings go to stderr, once the
// Notices are opened.
func (m *Masters) Dial(ctx context.Context, stderr io.Writer, opts ...redlock.Option) (*redlock.Client, error) {
	addrs, err := m.Addresses()
	if err != nil {
		return nil, err
	}
	login, err := m.Login(addrs)
	if err != nil {
		return nil, err
	}
	m.Notices = &Notices{w: stderr, resting: map[string]time.Time{}}
	opts = append(append(opts, login...), redlock.WithLogger(slog.New(m.Notices)))
	return redlock.Dial(ctx, addrs, opts...)
}

// Options are those of a client that takes locks. Of several groups it has only some names.
func (m *Masters) Options() []redlock.Option {
	opts := m.Asking()
	if m.Grouped() {
		opts = append(opts, redlock.WithSpread())
	}
	return opts
}

// Asking are the options of a client that takes no lock.
func (m *Masters) Asking() []redlock.Option {
	return []redlock.Option{redlock.WithNodeTimeout(m.NodeTimeout), redlock.WithKeyPrefix(m.Prefix), redlock.WithGroup(m.Name())}
}

// Name is that of the group. If --nodes gives one group alone, --group need not choose it.
func (m *Masters) Name() string {
	if groups, err := m.Groups(); err == nil && len(groups) == 1 {
		for name := range groups {
			return name
		}
	}
	return m.Group
}

// Login are the options for logging in.
func (m *Masters) Login(addrs []string) ([]redlock.Option, error) {
	var opts []redlock.Option
	ask, err := m.Credentials()
	if err != nil {
		return nil, err
	}
	if ask != nil {
		opts = append(opts, redlock.WithCredentials(ask))
	}
	config, err := m.TLSConfig(addrs)
	if err != nil {
		return nil, err
	}
	if config != nil {
		opts = append(opts, redlock.WithTLS(config))
	}
	return opts, nil
}

// TLSConfig is nil if no flag asks for one.
func (m *Masters) TLSConfig(addrs []string) (*tls.Config, error) {
	if m.tlsCA == "" && m.tlsCert == "" && m.tlsKey == "" {
		return nil, nil
	}
	encrypted := func(addr string) bool {
		return strings.HasPrefix(addr, "rediss://") || strings.HasPrefix(addr, "valkeys://")
	}
	if !slices.ContainsFunc(addrs, encrypted) {
		return nil, Usage("--tls-ca, --tls-cert, --tls-key: no address begins with rediss://, so TLS would not be used")
	}
	if (m.tlsCert == "") != (m.tlsKey == "") {
		return nil, Usage("--tls-cert and --tls-key: must be given together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.tlsCA != "" {
		pem, err := os.ReadFile(m.tlsCA)
		if err != nil {
			return nil, Usage("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usage("--tls-ca %s: has no certificate in it (PEM)", m.tlsCA)
		}
	}
	if m.tlsCert != "" {
		pair, err := tls.LoadX509KeyPair(m.tlsCert, m.tlsKey)
		if err != nil {
			return nil, Usage("--tls-cert, --tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
