package redlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/aside"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
)

// minTTL is the shortest TTL: below it, the two milliseconds of expiry precision and
// the round trips leave nothing to rely on.
const minTTL = 10 * time.Millisecond

// maxGuard is the longest restart guard, and so the longest TTL that is guarded.
const maxGuard = 360 * 24 * time.Hour

// Option configures a Client.
type Option func(*options)

type options struct {
	ttl           time.Duration
	nodeTimeout   time.Duration
	retryInterval time.Duration
	driftFactor   float64
	restartGuard  time.Duration // notSet: as long as the TTL
	clockGuard    time.Duration
	unnoticed     time.Duration // how far masters' clocks may be set forward without any client noticing; notSet: by clockGuard
	group         membership
	prefix        string
	clientID      string
	clock         clock.Clock
	logger        *slog.Logger
	observer      func(Event)
	tls           *tls.Config
	dialer        node.Dialer
	credentials   func(ctx context.Context, addr string) (Credentials, error)
	durable       []string
	seams         seam.Seams
}

// WithTTL sets how long a lock outlives a crashed holder, unless the lock has a TTL of
// its own. Default 30s. It is more than the node timeout and at least 23ms (without the
// clock guard 10ms), and may not exceed the restart guard, which is the same by default.
func WithTTL(d time.Duration) Option { return func(o *options) { o.ttl = d } }

// WithNodeTimeout sets how long one node may take to answer before it counts
// as failed. Default 50ms.
func WithNodeTimeout(d time.Duration) Option { return func(o *options) { o.nodeTimeout = d } }

// WithRetryInterval sets how often a waiting Lock asks again where no message would
// announce that the lock is free: while a client of another library holds it, or no
// quorum answers. Otherwise it asks again after a third of the TTL. Default 100ms,
// jittered.
func WithRetryInterval(d time.Duration) Option { return func(o *options) { o.retryInterval = d } }

// WithDriftFactor sets by what share of a TTL the clocks of client and nodes may
// run apart while it passes. Default 0.01, as the Redlock specification has it. All clients
// of a master must have the same, or the default: one with a higher factor does not notice
// what the leases of the others do not allow for (S62).
func WithDriftFactor(f float64) Option { return func(o *options) { o.driftFactor = f } }

// WithClock sets the clock that everything reads. Default: the system's.
func WithClock(c clock.Clock) Option { return func(o *options) { o.clock = c } }

// WithRestartGuard sets how long a node that came back without its keys must not grant:
// at least the longest TTL that any client uses. Default: this client's TTL. No lock
// may have a longer TTL (S5). Zero switches the guard off, which is safe only if every
// node syncs each write to disk before it answers.
func WithRestartGuard(d time.Duration) Option { return func(o *options) { o.restartGuard = d } }

// WithClockGuard(0) switches the clock guard off. While it is on, a master whose clock is set
// forward must not grant for a restart guard and HeardWithin (1.5 s), and every validity gives up
// 20ms, or more with a higher drift factor, for unnoticed steps. How much that is
// does not depend on d, since all clients of a master must agree on it. Default: on.
func WithClockGuard(d time.Duration) Option { return func(o *options) { o.clockGuard = d } }

// WithKeyPrefix puts a prefix before the name of every lock, and before
// everything else that this library stores. Default: none. It is at most 1 KiB long, and
// has no "redlock:" in it, which begins the keys of the library.
func WithKeyPrefix(s string) Option { return func(o *options) { o.prefix = s } }

// WithClientID sets the readable part of the stored values, which names the holder of
// a lock. It need not be unique, has no space and no slash, and does not begin with an
// exclamation mark. Default: host name and process id.
func WithClientID(s string) Option { return func(o *options) { o.clientID = s } }

// WithGroup names the group of masters that is given to Dial. Quorums of different
// sets need not intersect, so clients tell each other through a marker on the masters
// how many masters they lock with. A client with another number is refused with
// guard.ErrOtherGroup; one with other addresses is warned. A name makes it explicit:
// another name is refused, and under the same name addresses may differ. Default: no
// name.
func WithGroup(name string) Option { return func(o *options) { o.group.name = name } }

// WithSpread says that names are spread over several groups of masters, of which these masters are
// one: it has only the names that the map at the masters gives it. See [NewGroups]. The group needs
// a name (WithGroup), a restart guard and three masters at least. A client without WithSpread is refused
// by masters that have a map, but not one without a restart guard, which reads no marker.
func WithSpread() Option { return func(o *options) { o.group.spreads = true } }

// WithLogger sets where quarantines, refused nodes and lost leases are reported.
// Default: slog.Default. A handler that is slow, or blocks, holds up no lock: lines
// wait for it, and are dropped when too many wait.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithObserver adds a function that receives an Event for every attempt, renewal, loss
// and release, and for every change of a node: for metrics, tracing and alerts. It is called
// outside every mutex, from many goroutines, and must neither block nor call back into the
// client. If there are several observers, each receives every event, in the order of the
// options.
func WithObserver(f func(Event)) Option {
	return func(o *options) {
		switch first := o.observer; {
		case first == nil:
			o.observer = f
		case f != nil:
			o.observer = func(e Event) { first(e); f(e) }
		}
	}
}

// WithTLS sets the TLS configuration for rediss:// addresses given to Dial.
func WithTLS(c *tls.Config) Option { return func(o *options) { o.tls = c } }

// WithDialer sets how Dial connects: through a proxy, say, or to masters in
// memory. Default: a net.Dialer. TLS runs over the connection that it returns. Connections need
// TCP keep-alive: a client that nobody uses sends nothing. The dialer must return when ctx ends: Dial
// and Close wait for it.
func WithDialer(d func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(o *options) { o.dialer = d }
}

// Credentials are a user (empty: the default user), a password (empty: no login) and when
// the master ends connections that were logged in with them (zero: never). Printing them
// does not show the password.
type Credentials = node.Credentials

// WithCredentials sets a function that returns what to log in with at masters whose
// address has no password. It is called with host:port, or unix:path, at every connection, so
// that a password can change: in parallel, and with ten seconds to answer. It must return when ctx
// ends: Dial and Close wait for it.
//
// If the credentials expire, it is called again when three quarters to seven eighths of the
// time until then have passed, and the living connections are logged in again: one master at a
// time, and no connection more than once a second. A login that fails is tried again; the
// connection stays until the master ends it. Credentials that have expired already are an error.
func WithCredentials(ask func(ctx context.Context, addr string) (Credentials, error)) Option {
	return func(o *options) { o.credentials = ask }
}

// WithDurableNodes names addresses given to Dial whose masters never forget an
// acknowledged write (appendfsync always): the restart guard lets them grant
// immediately after a restart.
func WithDurableNodes(addrs ...string) Option {
	return func(o *options) { o.durable = append(o.durable, addrs...) }
}

// notSet is a duration that no caller asks for.
const notSet = time.Duration(math.MinInt64)

const (
	maxMetadata = 1024
	maxName     = 16 << 10 // bytes of the name of a lock
	maxPrefix   = 1 << 10
	maxClientID = 256
)

func defaultOptions() options {
	return options{
		ttl:           defaults.TTL,
		nodeTimeout:   defaults.NodeTimeout,
		retryInterval: defaults.RetryInterval,
		driftFactor:   drift.DefaultFactor,
		restartGuard:  notSet,
		clockGuard:    notSet,
		unnoticed:     notSet,
		clock:         clock.New(),
		logger:        slog.Default(),
	}
}

// check fills in defaults that depend on other options and refuses values that
// cannot work. Its error names the option, the value and the allowed values. It is
// the only place where client options are validated.
func (o *options) check() error {
	if err := checkTTL("WithTTL", o.ttl); err != nil {
		return err
	}
	if o.restartGuard == notSet {
		o.restartGuard = o.ttl
	}
	if o.clockGuard == notSet {
		o.clockGuard = defaults.ClockGuard
	}
	if o.unnoticed == notSet {
		o.unnoticed = 0
		if o.clockGuard != 0 && o.restartGuard != 0 {
			o.unnoticed = drift.UnnoticedBy(o.driftFactor)
		}
	}
	switch {
	case o.restartGuard != 0 && o.restartGuard < o.ttl:
		return fmt.Errorf("redlock: WithRestartGuard(%v): must be 0 (off) or at least the TTL %v", o.restartGuard, o.ttl)
	case o.restartGuard > maxGuard:
		return fmt.Errorf("redlock: WithRestartGuard(%v): must be at most %v", o.restartGuard, maxGuard)
	case o.nodeTimeout < time.Millisecond:
		return fmt.Errorf("redlock: WithNodeTimeout(%v): must be at least 1ms", o.nodeTimeout)
	case o.nodeTimeout >= o.ttl && !o.seams.Unsafe.LongTimeout:
		return fmt.Errorf("redlock: WithNodeTimeout(%v): must be less than the TTL %v", o.nodeTimeout, o.ttl)
	case o.retryInterval < time.Millisecond:
		return fmt.Errorf("redlock: WithRetryInterval(%v): must be at least 1ms", o.retryInterval)
	case o.clockGuard < 0:
		return fmt.Errorf("redlock: WithClockGuard(%v): must be 0 (off) or positive", o.clockGuard)
	case o.clock == nil:
		return fmt.Errorf("redlock: WithClock(nil): must be a clock")
	case o.logger == nil:
		return fmt.Errorf("redlock: WithLogger(nil): must be a logger; use slog.DiscardHandler for silence")
	case len(o.prefix) > maxPrefix:
		return fmt.Errorf("redlock: WithKeyPrefix(%.60q...): %d bytes: must be at most %d", o.prefix, len(o.prefix), maxPrefix)
	case strings.Contains(o.prefix, reserved):
		return fmt.Errorf("redlock: WithKeyPrefix(%.300q): must not have %q in it: that is for the keys of the library", o.prefix, reserved)
	case len(o.clientID) > maxClientID:
		return fmt.Errorf("redlock: WithClientID: %d bytes: must be at most %d", len(o.clientID), maxClientID)
	case strings.ContainsAny(o.clientID, " /"):
		return fmt.Errorf("redlock: WithClientID(%.300q): must not contain a space or a slash", o.clientID)
	case strings.HasPrefix(o.clientID, values.Kept):
		return fmt.Errorf("redlock: WithClientID(%.300q): must not begin with %s", o.clientID, values.Kept)
	}
	if err := guard.CheckGroupName(o.group.name); err != nil {
		return fmt.Errorf("redlock: WithGroup: %w", err)
	}
	if err := o.checkSpread(); err != nil {
		return err
	}
	if err := drift.CheckFactor(o.driftFactor); err != nil {
		return fmt.Errorf("redlock: WithDriftFactor: %w", err)
	}
	if o.budget(o.ttl) == 0 {
		return fmt.Errorf("redlock: WithTTL(%v) with WithDriftFactor(%v): the drift allowance and the clock guard's %v leave no validity", o.ttl, o.driftFactor, o.unnoticed)
	}
	// Losses are logged where timers fire and answers are read.
	o.logger = slog.New(aside.NewHandler(o.logger.Handler()))
	return nil
}

// refuseDialOptions refuses options that newClient cannot heed: an option without effect
// would be a protection that is not there.
func (o *options) refuseDialOptions() error {
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"WithRestartGuard", o.restartGuard != notSet},
		{"WithClockGuard", o.clockGuard != notSet},
		{"WithDurableNodes", o.durable != nil},
		{"WithGroup", o.group.name != ""}, {"WithSpread", o.group.spreads},
		{"WithTLS", o.tls != nil},
		{"WithDialer", o.dialer != nil},
		{"WithCredentials", o.credentials != nil},
	} {
		if option.given {
			return fmt.Errorf("redlock: %s: has no effect on nodes that Dial has not made; it is for Dial", option.name)
		}
	}
	return nil
}

// checkTTL refuses a lease that is too short to rely on or that a restarted
// node could forget while it still runs (S5).
func (o *options) checkTTL(field string, d time.Duration) error {
	if err := checkTTL(field, d); err != nil {
		return err
	}
	if d <= o.nodeTimeout && !o.seams.Unsafe.LongTimeout {
		return fmt.Errorf("redlock: %s(%v): must be more than the node timeout %v", field, d, o.nodeTimeout)
	}
	if o.restartGuard > 0 && d > o.restartGuard {
		return fmt.Errorf("redlock: %s(%v): must be at most the restart guard %v (see WithRestartGuard)", field, d, o.restartGuard)
	}
	if o.budget(d) == 0 {
		return fmt.Errorf("redlock: %s(%v): the drift allowance and the clock guard's %v leave no validity", field, d, o.unnoticed)
	}
	return nil
}

// budget is how long a lease of ttl may be relied on from its first send.
func (o *options) budget(ttl time.Duration) time.Duration {
	return max(0, drift.Budget(ttl, o.driftFactor)-o.unnoticed)
}

func checkTTL(field string, d time.Duration) error {
	if d < minTTL {
		return fmt.Errorf("redlock: %s(%v): must be at least %v", field, d, minTTL)
	}
	return nil
}

// membership is of which group a client's masters are.
type membership struct {
	name    string
	spreads bool         // it has only some names
	masters *guard.Group // knows which; nil: all names are here
}

// of returns what the masters of these names have in common.
func (m membership) of(names []string) *guard.Group {
	id := guard.GroupOf(m.name, names...)
	if m.spreads {
		return guard.NewSpread(id)
	}
	return guard.NewGroup(id)
}

func (o *options) checkSpread() error {
	if !o.group.spreads {
		return nil
	}
	if err := spread.Check([]string{o.group.name}); err != nil {
		return fmt.Errorf("redlock: WithSpread: WithGroup: %w", err)
	}
	if o.restartGuard == 0 {
		return errors.New("redlock: WithSpread with WithRestartGuard(0): the map of groups is in the markers of the restart guard")
	}
	return nil
}
