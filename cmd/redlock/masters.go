package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// masters are the flags that say which masters to ask, and how.
type masters struct {
	nodes       []string
	nodeTimeout time.Duration
	prefix      string

	user         string
	passwordFile string
	tlsCA        string
	tlsCert      string
	tlsKey       string

	notices *notices // of the client that was dialled last
}

// connectPatience is how long a quorum of connections may take if we may not wait for
// anything.
const connectPatience = 5 * time.Second

const aboutSecrets = `A password in --nodes can be read in the list of processes, and one in
REDLOCK_NODES is inherited by whatever is started. Write it to a file that only
you can read, and name that in --password-file.`

func (m *masters) register(flags *pflag.FlagSet, nodeTimeout time.Duration) {
	flags.StringArrayVar(&m.nodes, "nodes", nil, "the `masters`, separated by commas: host:port, redis://user:password@host:port/db, rediss://... for TLS, unix:///path")
	flags.DurationVar(&m.nodeTimeout, "node-timeout", nodeTimeout, "how long one master may take to answer")
	flags.StringVar(&m.prefix, "prefix", "", "what every key begins with")
	flags.StringVar(&m.user, "user", "", "the ACL user, with --password-file")
	flags.StringVar(&m.passwordFile, "password-file", "", "the `file` that holds the password of all masters whose address has none; it is read at every connection")
	flags.StringVar(&m.tlsCA, "tls-ca", "", "the `file` of certificates that sign those of the masters (PEM), instead of the system's")
	flags.StringVar(&m.tlsCert, "tls-cert", "", "the `file` of our certificate (PEM), with --tls-key")
	flags.StringVar(&m.tlsKey, "tls-key", "", "the `file` of its key (PEM)")
}

// addresses returns the masters, or an error that says how to name them. It
// quotes none of them: each may hold a password.
func (m *masters) addresses() ([]string, error) {
	var addrs []string
	for _, addr := range strings.Split(strings.Join(m.nodes, ","), ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	if m.nodeTimeout < time.Millisecond {
		return nil, usage("--node-timeout %v: must be at least 1ms", m.nodeTimeout)
	}
	if len(addrs) == 0 {
		return nil, usage("no masters given: use --nodes a:6379,b:6379,c:6379 or set %s to the same; "+
			"five that are independent of each other are advised (redlock demo needs none)", variable("nodes"))
	}
	for i, addr := range addrs {
		if strings.Contains(addr, "@") && !strings.Contains(addr, "://") {
			return nil, usage("--nodes: address %d of %d has an @ but no redis:// before it; "+
				"a comma in a password is written %%2C", i+1, len(addrs))
		}
	}
	return addrs, nil
}

// dial connects to a quorum of the masters. Warnings go to stderr, once the
// notices are opened.
func (m *masters) dial(ctx context.Context, stderr io.Writer, opts ...redlock.Option) (*redlock.Client, error) {
	addrs, err := m.addresses()
	if err != nil {
		return nil, err
	}
	login, err := m.login(addrs)
	if err != nil {
		return nil, err
	}
	m.notices = &notices{w: stderr, resting: map[string]time.Time{}}
	opts = append(append(opts, login...), redlock.WithLogger(slog.New(m.notices)))
	return redlock.Dial(ctx, addrs, opts...)
}

func (m *masters) options() []redlock.Option {
	return []redlock.Option{redlock.WithNodeTimeout(m.nodeTimeout), redlock.WithKeyPrefix(m.prefix)}
}

// login are the options for logging in.
func (m *masters) login(addrs []string) ([]redlock.Option, error) {
	var opts []redlock.Option
	ask, err := m.credentials()
	if err != nil {
		return nil, err
	}
	if ask != nil {
		opts = append(opts, redlock.WithCredentials(ask))
	}
	config, err := m.tlsConfig(addrs)
	if err != nil {
		return nil, err
	}
	if config != nil {
		opts = append(opts, redlock.WithTLS(config))
	}
	return opts, nil
}

// credentials reads the password from its file: now, to see that it can be read,
// and at every connection, because it may change.
func (m *masters) credentials() (node.Credentials, error) {
	if m.passwordFile == "" {
		if m.user != "" {
			return nil, usage("--user %s: needs --password-file", plain(m.user))
		}
		return nil, nil
	}
	read := func() (string, error) {
		b, err := os.ReadFile(m.passwordFile)
		return strings.TrimRight(string(b), "\r\n"), err
	}
	password, err := read()
	switch {
	case err != nil:
		return nil, usage("--password-file: %w", err)
	case password == "":
		return nil, usage("--password-file %s: must not be empty", m.passwordFile)
	case strings.ContainsAny(password, "\r\n"):
		return nil, usage("--password-file %s: must have one line", m.passwordFile)
	}
	return func(context.Context, string) (string, string, error) {
		password, err := read()
		return m.user, password, err
	}, nil
}

// tlsConfig is nil if no flag asks for one.
func (m *masters) tlsConfig(addrs []string) (*tls.Config, error) {
	if m.tlsCA == "" && m.tlsCert == "" && m.tlsKey == "" {
		return nil, nil
	}
	encrypted := func(addr string) bool {
		return strings.HasPrefix(addr, "rediss://") || strings.HasPrefix(addr, "valkeys://")
	}
	if !slices.ContainsFunc(addrs, encrypted) {
		return nil, usage("--tls-ca, --tls-cert, --tls-key: no address begins with rediss://, so TLS would not be used")
	}
	if (m.tlsCert == "") != (m.tlsKey == "") {
		return nil, usage("--tls-cert and --tls-key: must be given together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.tlsCA != "" {
		pem, err := os.ReadFile(m.tlsCA)
		if err != nil {
			return nil, usage("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usage("--tls-ca %s: has no certificate in it (PEM)", m.tlsCA)
		}
	}
	if m.tlsCert != "" {
		pair, err := tls.LoadX509KeyPair(m.tlsCert, m.tlsKey)
		if err != nil {
			return nil, usage("--tls-cert, --tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
