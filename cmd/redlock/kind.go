//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// kindFlags say of what kind the lock is.
type kindFlags struct {
	shared, write  bool
	permits, total int
	fair, fenced   bool
	atLeast        time.Duration // zero: not kept
	tokenEnv       string
}

const aboutKinds = `The lock is a mutex unless a flag says otherwise: --shared and --write hold a
read-write lock, -n 1 --of 4 holds one of the four permits of a semaphore. All
who use a name must use it for the same kind: a mutex does not see readers. Run
warns where it finds the name held as another kind. Of a mutex, --fair serves
those who wait in the order of their arrival, and --fenced gives the command a
fencing token in REDLOCK_TOKEN: a number that is higher than that of every
holder before it. See "redlock elect" for a leader.`

func (k *kindFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&k.shared, "shared", false, "hold a read-write lock for reading, beside other readers; writers use --write")
	flags.BoolVar(&k.write, "write", false, "hold a read-write lock for writing, alone")
	flags.IntVarP(&k.permits, "permits", "n", 1, "hold so many permits of a semaphore, with --of")
	flags.IntVar(&k.total, "of", 0, "how many permits the semaphore has: the same for all who use it")
	flags.BoolVar(&k.fair, "fair", false, "be served in the order of arrival, if all who use the lock say so")
	flags.BoolVar(&k.fenced, "fenced", false, "give the command a fencing token, if all who use the lock say so")
	flags.DurationVar(&k.atLeast, "at-least", 0, "keep the lock from others for so long, however early the command ends: once per period")
	registerTokenEnv(flags, &k.tokenEnv)
}

func registerTokenEnv(flags *pflag.FlagSet, name *string) {
	flags.StringVar(name, "token-env", cli.TokenEnv, "the `variable` in the command's environment that holds the fencing token")
}

// contradictions are pairs of flags of which a lock can have only one.
var contradictions = [][2]string{
	{"shared", "write"},
	{"shared", "permits"}, {"shared", "of"}, {"shared", "fair"}, {"shared", "fenced"}, {"shared", "at-least"},
	{"write", "permits"}, {"write", "of"}, {"write", "fair"}, {"write", "fenced"}, {"write", "at-least"},
	{"of", "fair"}, {"of", "at-least"},
}

// check refuses flags that make no sense together.
func (k *kindFlags) check(flags *pflag.FlagSet) error {
	given := func(name string) bool {
		f := flags.Lookup(name)
		return f.Changed && f.Value.String() != "false"
	}
	for _, pair := range contradictions {
		if given(pair[0]) && given(pair[1]) {
			return cli.Usage("--%s and --%s: a lock cannot be both; see docs/kinds.md", pair[0], pair[1])
		}
	}
	switch {
	case given("permits") && !given("of"):
		return cli.Usage("--permits %d: needs --of, the number of permits that the semaphore has", k.permits)
	case given("of") && (k.total < 1 || k.total > wire.MaxPermits):
		return cli.Usage("--of %d: must be from 1 to %d", k.total, wire.MaxPermits)
	case given("of") && (k.permits < 1 || k.permits > k.total):
		return cli.Usage("--permits %d: must be from 1 to %d, the permits that there are (--of)", k.permits, k.total)
	case given("token-env") && !k.fenced:
		return cli.Usage("--token-env %s: needs --fenced: other locks have no token", cli.Plain(k.tokenEnv))
	}
	return checkVariable(k.tokenEnv)
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func checkVariable(name string) error {
	if !variableName.MatchString(name) || name == cli.NameEnv || name == cli.ValueEnv {
		return cli.Usage("--token-env %q: must be the name of a variable: letters, digits and _, but not %s or %s", name, cli.NameEnv, cli.ValueEnv)
	}
	return nil
}

// lock is the lock of that name.
func (k *kindFlags) lock(client *redlock.Client, name string, option redlock.LockOption) locker {
	switch {
	case k.shared:
		return reader{client.RWMutex(name, option)}
	case k.write:
		return client.RWMutex(name, option)
	case k.total > 0:
		options := []redlock.SemaphoreOption{option}
		if k.fenced {
			options = append(options, redlock.Fenced())
		}
		return holderOfPermits{client.Semaphore(name, k.total, options...), k.permits}
	}
	options := []redlock.MutexOption{option}
	if k.fenced {
		options = append(options, redlock.Fenced())
	}
	if k.fair {
		options = append(options, redlock.Fair())
	}
	if k.atLeast != 0 {
		options = append(options, redlock.AtLeast(k.atLeast))
	}
	return client.Mutex(name, options...)
}

// besides says who else holds the name, as a lock of another kind, which does not
// exclude this one; empty: no client does.
func (k *kindFlags) besides(h redlock.Holder) string {
	ours := "mutex"
	switch {
	case k.total > 0:
		ours = "semaphore"
	case k.shared || k.write:
		ours = "read-write lock"
	}
	readers, permits := 0, 0
	for _, s := range h.Shares {
		if s.Slots == nil {
			readers++
		} else {
			permits += len(s.Slots)
		}
	}
	var others []string
	if h.Value != "" && ours == "semaphore" {
		others = append(others, "a mutex or a writer by "+named(cmp.Or(h.Client, "another library"), h.Metadata))
	}
	if readers > 0 && ours != "read-write lock" {
		others = append(others, "a read-write lock by "+words.Counted(readers, "reader"))
	}
	if permits > 0 && ours != "semaphore" {
		others = append(others, "a semaphore, with "+words.Counted(permits, "permit")+" taken")
	}
	if len(others) == 0 {
		return ""
	}
	return "it is held as a " + ours + " here and as " + cli.Enumerated(others) + ": these do not exclude each other; use a name for one kind only"
}

// warnOfOthers looks, beside the command, whether the name is held as a lock of another
// kind. It returns a function that waits for the end of that look.
func (o *runOptions) warnOfOthers(client *redlock.Client, name string) (wait func()) {
	var look sync.WaitGroup
	look.Go(func() {
		h, err := client.Inspect(context.Background(), name)
		if err != nil {
			return // nothing is known
		}
		if others := o.kind.besides(h); others != "" {
			cli.Complain(o.stderr, fmt.Errorf("warning: lock %q: %s", name, others))
		}
	})
	return look.Wait
}

// reader takes a read-write lock for reading.
type reader struct{ *redlock.RWMutex }

func (r reader) Lock(ctx context.Context) (*redlock.Lease, error) { return r.RLock(ctx) }

func (r reader) TryLock(ctx context.Context) (*redlock.Lease, error) { return r.TryRLock(ctx) }

// holderOfPermits takes some permits of a semaphore.
type holderOfPermits struct {
	*redlock.Semaphore
	n int
}

func (h holderOfPermits) Lock(ctx context.Context) (*redlock.Lease, error) {
	return h.Acquire(ctx, h.n)
}

func (h holderOfPermits) TryLock(ctx context.Context) (*redlock.Lease, error) {
	return h.TryAcquire(ctx, h.n)
}
