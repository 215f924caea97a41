package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/redlock"
)

// runOptions are the flags of redlock run.
type runOptions struct {
	masters
	ttl      time.Duration
	grace    time.Duration
	guard    time.Duration
	wait     patience
	metadata string
	stderr   io.Writer
}

func newRunCommand() *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- COMMAND [ARGS...]",
		Short: "Run a command while holding a lock",
		Long: `Run takes the lock NAME, runs COMMAND while it is held, and releases it. The lock
is renewed for as long as the command runs.

The command runs in a process group of its own, with REDLOCK_NAME and
REDLOCK_VALUE in its environment. Signals (HUP, INT, QUIT, TERM, USR1, USR2) are
passed on to the whole group; while waiting for the lock they end the waiting.
If the lock cannot be renewed, the group gets SIGTERM when --grace of the
validity is left, and SIGKILL shortly before its end. If the lock is found lost,
because a majority of the masters forgot it, the group is killed at once. What
the command leaves behind in its group when it ends gets SIGTERM, and SIGKILL
after 5s, before the lock is released. Out of reach is a process that leaves the
group, such as a daemon or a job of an interactive shell, or that runs as another
user.

A command that is stopped with ^Z keeps its lock until the TTL has passed. When
it is continued later than that, it is killed.

The exit code is the command's own, 128+N if signal N ended it, or
   64  the command line makes no sense
   69  no quorum: too few masters answered
   74  the lock was lost while the command ran, whatever became of the command
   75  somebody else holds the lock
  126  the command cannot be executed
  127  there is no such command`,
		Example: `  redlock run --nodes a,b,c,d,e nightly-report -- ./report.sh --all
  REDLOCK_NODES=a,b,c,d,e redlock run --wait 1m deploy:web -- make deploy`,
		Args: checkRunArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stderr = cmd.ErrOrStderr()
			if err := o.check(cmd.Flags(), args[0]); err != nil {
				return err
			}
			return o.run(args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	o.register(flags, redlock.DefaultNodeTimeout)
	flags.DurationVar(&o.ttl, "ttl", redlock.DefaultTTL, "how long the lock outlives us if we crash; at least 1s")
	flags.DurationVar(&o.grace, "grace", 0, "how long before the end of the validity SIGTERM\ncomes, at most half of the TTL (default a third)")
	flags.Var(&o.wait, "wait", "how long to wait for the lock: 0 (try once, the\ndefault), a `duration` such as 90s, or forever")
	flags.StringVar(&o.metadata, "metadata", "", "what redlock status shows of the holder, at most\n1024 bytes")
	flags.DurationVar(&o.guard, "restart-guard", 0, "how long a master that lost its memory may not\nvote: the longest TTL that anybody uses there\n(default 30s, or the TTL if that is longer)")
	return cmd
}

func checkRunArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0 || dash == 0:
		return errors.New("the name of the lock is missing: redlock run NAME -- COMMAND [ARGS...]")
	case dash != 1:
		return errors.New("put -- between the name of the lock and the command: redlock run NAME -- COMMAND [ARGS...]")
	case len(args) == 1:
		return errors.New("the command is missing: redlock run NAME -- COMMAND [ARGS...]")
	}
	return nil
}

// check computes the defaults that depend on other flags, and refuses what
// cannot work, before any node is asked.
func (o *runOptions) check(flags *pflag.FlagSet, name string) error {
	if !flags.Changed("grace") {
		o.grace = o.ttl / 3
	}
	if !flags.Changed("restart-guard") {
		o.guard = max(redlock.DefaultTTL, o.ttl)
	}
	switch {
	case o.ttl < minRunTTL:
		return usage("--ttl %v: must be at least %v: in less, no process ends in time", o.ttl, minRunTTL)
	case o.grace < 0 || o.grace > o.ttl/2:
		return usage("--grace %v: must be from 0 (no SIGTERM) to half of the TTL, %v", o.grace, o.ttl/2)
	case o.guard != 0 && o.guard < o.ttl:
		return usage("--restart-guard %v: must be 0 (off) or at least the TTL, %v", o.guard, o.ttl)
	}
	return rehearse(name, redlock.Metadata(o.metadata), o.options()...)
}

// options are those of the client.
func (o *runOptions) options() []redlock.Option {
	return append(o.masters.options(), redlock.WithTTL(o.ttl), redlock.WithRestartGuard(o.guard))
}

const minRunTTL = time.Second

// run takes the lock, runs the command and releases the lock.
func (o *runOptions) run(name string, argv []string) error {
	path, err := lookUp(argv[0])
	if err != nil {
		return err
	}
	signals := listen()
	client, lease, err := o.lock(name, signals)
	if err != nil {
		return err
	}
	defer client.Close()

	s := &session{lease: lease, grace: o.grace, lead: killLead(o.ttl), signals: signals, terminal: openTerminal(), stderr: o.stderr}
	code, err := s.run(path, argv)
	unlocked := lease.Unlock(context.Background())
	switch {
	case err != nil:
		return err
	case s.lost:
		return &exit{exitLost, nil} // it has been said
	case errors.Is(unlocked, redlock.ErrLost) || errors.Is(unlocked, redlock.ErrExpired):
		return &exit{exitLost, fmt.Errorf("lock %q was lost while the command ran", name)}
	case unlocked != nil:
		complain(o.stderr, fmt.Errorf("%w: the lock stays until its TTL has passed", unlocked))
	}
	if code != 0 {
		return &exit{code, nil}
	}
	return nil
}

// lookUp finds the command, before the lock is taken in vain.
func lookUp(command string) (string, error) {
	path, err := exec.LookPath(command)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &exit{exitNotFound, err}
	}
	return "", &exit{exitNotRun, err}
}

// connectPatience is how long a quorum of connections may take, however little
// time there is for the lock itself.
const connectPatience = 5 * time.Second

// lock connects and takes the lock, unless a signal comes first.
func (o *runOptions) lock(name string, signals chan os.Signal) (*redlock.Client, *redlock.Lease, error) {
	ctx, done := untilSignal(signals)
	start := time.Now()
	client, err := o.connect(ctx)
	if err != nil {
		return nil, nil, cmp.Or(done(), failed(err))
	}
	m := client.Mutex(name, redlock.Metadata(o.metadata))
	lease, err := o.wait.lock(ctx, m, start)
	if err == nil {
		if err = done(); err == nil {
			return client, lease, nil
		}
		lease.Unlock(context.Background())
	} else if err = cmp.Or(done(), failed(err)); codeOf(err) == exitBusy {
		err = &exit{exitBusy, describe(client, name, err)}
	}
	client.Close()
	return nil, nil, err
}

// connect connects to a quorum of the masters, and tries again for as long as
// we are to wait.
func (o *runOptions) connect(ctx context.Context) (*redlock.Client, error) {
	if o.wait != forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(time.Duration(o.wait), connectPatience))
		defer cancel()
	}
	for told := false; ; told = true {
		client, err := o.dial(ctx, o.stderr, o.options()...)
		if o.wait == 0 || !errors.Is(err, redlock.ErrNoQuorum) || ctx.Err() != nil {
			return client, err
		}
		if !told {
			complain(o.stderr, fmt.Errorf("%w; trying again", err))
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(reconnectPause):
		}
	}
}

// reconnectPause is how long to wait before trying masters again that are down.
const reconnectPause = 500 * time.Millisecond

// describe tells who holds the lock, if that can be found out.
func describe(client *redlock.Client, name string, busy error) error {
	h, err := client.Inspect(context.Background(), name)
	if err != nil || !h.Held {
		return busy
	}
	return fmt.Errorf("lock %q is taken: %s", name, holder(h))
}
