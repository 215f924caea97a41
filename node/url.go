package node

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// address is where a master is and how we log in there. Its String is for people and
// never has the password.
type address struct {
	network  string // tcp or unix
	host     string // host:port, or the socket's path
	tls      bool
	user     string
	password string
	db       int
}

const defaultPort = "6379"

// Name returns what the Addr of the master at an address would be: host:port,
// or unix:path. It fails where Open would for the address, and dials nothing.
func Name(addr string) (string, error) {
	a, err := parseAddress(addr)
	if err != nil {
		return "", err
	}
	return a.String(), nil
}

func (a address) String() string {
	if a.network == "unix" {
		return "unix:" + a.host
	}
	return a.host
}

// parseAddress reads
//
//	host, host:port, [ipv6]:port
//	redis://[[user]:password@]host[:port][/db]    rediss:// for TLS
//	unix://[[user]:password@]/path[?db=db]
//
// valkey:// and valkeys:// are redis:// and rediss://. Errors name the part
// that is wrong and hide the password.
func parseAddress(s string) (address, error) {
	a, err := parse(s)
	if err != nil {
		return address{}, fmt.Errorf("node address %q: %w", redact(s), err)
	}
	return a, nil
}

func parse(s string) (address, error) {
	scheme, _, ok := strings.Cut(s, "://")
	if !ok {
		host, err := hostPort(s)
		return address{network: "tcp", host: host}, err
	}
	u, err := url.Parse(s)
	if err != nil {
		// url.Error quotes the unreadable part, which may be the password.
		return address{}, errors.New("not a URL; the port must be a number, special characters in the user or password must be percent-encoded")
	}
	var a address
	if a.user, a.password, err = credentials(u.User); err != nil {
		return a, err
	}
	if u.Fragment != "" {
		return a, errors.New("a fragment (#...) has no meaning here; write # in a password as %23")
	}
	switch scheme {
	case "redis", "valkey":
		return a, a.tcp(u)
	case "rediss", "valkeys":
		a.tls = true
		return a, a.tcp(u)
	case "unix":
		return a, a.unix(u)
	}
	return a, fmt.Errorf("scheme %q: must be redis, rediss, valkey, valkeys or unix", scheme)
}

func (a *address) tcp(u *url.URL) (err error) {
	a.network = "tcp"
	if a.host, err = hostPort(u.Host); err != nil {
		return err
	}
	if a.db, err = database(strings.TrimPrefix(u.Path, "/")); err != nil {
		return err
	}
	return onlyParameters(u)
}

func (a *address) unix(u *url.URL) (err error) {
	if u.Host != "" || len(u.Path) < 2 {
		return errors.New("socket path: must be absolute, unix:///path")
	}
	a.network, a.host = "unix", u.Path
	if a.db, err = database(u.Query().Get("db")); err != nil {
		return err
	}
	return onlyParameters(u, "db")
}

func onlyParameters(u *url.URL, known ...string) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("parameters after ?: not name=value pairs")
	}
	for name := range query {
		if len(known) == 0 || name != known[0] {
			return fmt.Errorf("parameter %q: unknown here", name)
		}
	}
	return nil
}

func credentials(u *url.Userinfo) (user, password string, err error) {
	if u == nil {
		return "", "", nil
	}
	password, _ = u.Password()
	if password == "" {
		return "", "", errors.New("password: missing; write user:password@ or :password@")
	}
	return u.Username(), password, nil
}

func database(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	db, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("database%s: must be a number from 0", shown(s))
	}
	return int(db), nil
}

// hostPort checks host and port and fills in the default port.
func hostPort(s string) (string, error) {
	host, port := s, defaultPort
	if bare := unbracket(s); net.ParseIP(bare) != nil {
		host = bare // IPv6 without a port has colons of its own
	} else if strings.Contains(s, ":") {
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", errors.New("must be host:port; IPv6 addresses go in brackets: [::1]:6379")
		}
	}
	if strings.Contains(s, "@") {
		return "", errors.New("credentials go with a scheme: redis://user:password@host:port")
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n/?#[]") {
		host, _, _ = strings.Cut(host, "/") // what follows may be anything
		return "", fmt.Errorf("host %q: must be a name or an IP address", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port%s: must be a number from 1 to 65535", shown(port))
	}
	return net.JoinHostPort(host, port), nil
}

func unbracket(s string) string {
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		return s[1 : len(s)-1]
	}
	return s
}

// shown is a value as errors quote it, or nothing when it may be a password that
// is in the wrong place: only a number is shown.
func shown(s string) string {
	if len(s) > len("-2147483648") || strings.Trim(s, "-0123456789") != "" {
		return ""
	}
	return fmt.Sprintf(" %q", s)
}

// redact leaves out everything that may be a password, wherever a malformed address
// has it: all before the last @, a port and a database that are not numbers, and the
// parameters.
func redact(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if ok {
		scheme += "://"
	} else {
		scheme, rest = "", s
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		scheme, rest = scheme+"***@", rest[at+1:]
	}
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	if strings.HasPrefix(scheme, "unix://") {
		return scheme + rest
	}
	host, database, slash := strings.Cut(rest, "/")
	if slash {
		database = "/" + masked(database)
	}
	colon := strings.IndexByte(host, ':')
	if strings.HasPrefix(host, "[") {
		colon = strings.LastIndex(host, "]:") + 1
	}
	if colon > 0 || strings.HasPrefix(host, ":") {
		host = host[:colon+1] + masked(host[colon+1:])
	}
	return scheme + host + database
}

// masked is s if it can be shown, else stars.
func masked(s string) string {
	if s != "" && shown(s) == "" {
		return "***"
	}
	return s
}
