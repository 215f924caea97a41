//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/cmd/redlock/internal/procgroup"
	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/redlock"
)

// aboutFreshMasters explains the first thirty seconds.
const aboutFreshMasters = `Masters that were started lately do not vote: they may have forgotten locks that
are still held. That lasts for the longest TTL that anybody uses, 30s unless
--restart-guard says otherwise. Without --wait, run sits it out for as long, and
says so; --wait 0 does not. It begins when the first client has seen the
restart: "redlock doctor --wait" after a restart spares the next client that.
New masters need not wait if "redlock init" declares them new, before that or
while run waits.`

// runOptions are the flags of redlock run.
type runOptions struct {
	masters
	ttl      time.Duration
	grace    time.Duration
	guard    time.Duration
	warns    warnSignal
	requests warnSignal
	wait     patience
	sitsOut  bool     // a quarantine, although it does not wait for a holder
	durable  []string // masters that lose nothing when they restart
	metadata string
	// metadataFlag sets it, if that is not --metadata.
	metadataFlag string
	kind         kindFlags
	take         func(*redlock.Client, string) locker // the lock that the command runs under
	free         string                               // the word for a free lock

	conflictCode int  // the exit code when another client has the lock
	holdOnly     bool // no command: hold the lock until a signal comes

	stderr  io.Writer
	renewed chan struct{} // delivers after a renewal
}

func newRunOptions() *runOptions {
	return &runOptions{renewed: make(chan struct{}, 1), conflictCode: cli.ExitBusy, free: "free, but not granted yet"}
}

func newRunCommand() *cobra.Command {
	o := newRunOptions()
	o.take = func(client *redlock.Client, name string) locker {
		return o.kind.lock(client, name, redlock.Metadata(o.metadata))
	}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- COMMAND [ARGS...]",
		Short: "Run a command while holding a lock",
		Long: `Run takes the lock NAME, runs COMMAND while it is held, and releases it. The
lock is renewed for as long as the command runs. It tries once: if another
client has the lock, run gives up immediately, unless --wait makes it wait.

` + aboutKinds + `

With --at-least 1m the lock stays at the masters until 1m after it was taken,
however early the command ends: of the crons of five machines that start run at
the same minute, one runs the command, and the others exit with 75 and say
until when the lock is taken. "redlock unlock --force NAME" frees it earlier.

With --hold there is no command: run prints the lock's value when it has it,
and in a second line the token if it is fenced. It keeps the lock until INT,
TERM, HUP or QUIT. If the value cannot be written, run releases the lock and
exits with 1.

The command runs in a process group of its own, with REDLOCK_NAME and
REDLOCK_VALUE in its environment. Signals (HUP, INT, QUIT, TERM, USR1, USR2) are
passed on to the whole group; while waiting for the lock they end the waiting.
If the lock cannot be renewed, the group gets the --warn-signal, if there is
one, when half of the validity has passed, SIGTERM when --grace of it is left,
and SIGKILL shortly before its end. If the lock is found lost,
because a majority of the masters forgot it, the group is killed. If somebody
asks for the lock with "redlock unlock --ask", the group gets the --on-request
signal, if there is one: whether it ends is its own decision. What
the command leaves behind in its group when it ends gets SIGTERM, and SIGKILL
after 5s, before the lock is released. A process that has left the group by
then, such as a daemon, is left alone.

On Linux a small process of its own, the supervisor, ends the command also when
redlock itself is killed with SIGKILL, and when the lock ends while redlock
stands still (SIGSTOP). It and a loss reach everything that the command has
started, in its group or not; if the supervisor is killed or stopped, redlock
does so. Out of reach is what runs as another user, and what was started through
others (a service manager, a container engine, at), and everything if redlock
and the supervisor are killed or stopped at the same time.
On other systems only the group is reached, and nothing when redlock is killed
or stopped with SIGSTOP.

A command that is stopped with ^Z keeps its lock until the TTL has passed. Then
it is killed: on Linux at once, elsewhere when it is continued.

The exit code is the command's own, 128+N if signal N ended it, or
   64  the command line makes no sense
   69  no quorum: too few masters answered
   74  the lock was lost while the command ran, whatever became of the command
   75  another client holds the lock (or --conflict-exit-code)
   78  the masters refuse us: wrong password, no permission, another group of
       masters, one server is listed twice, or the semaphore has another number
       of permits than --of says
  126  the command cannot be executed
  127  there is no such command

` + cli.AboutSecrets + `

` + aboutFreshMasters,
		Example: `  redlock run --nodes a,b,c,d,e nightly-report -- ./report.sh --all
  REDLOCK_NODES=a,b,c,d,e redlock run --wait 1m deploy:web -- make deploy
  redlock run -n 1 --of 4 --wait forever gpu -- ./train.sh
  redlock run --at-least 1m nightly -- ./job
  redlock run --hold maintenance`,
		Args: checkRunArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stderr = cmd.ErrOrStderr()
			if err := o.kind.check(cmd.Flags()); err != nil {
				return err
			}
			if err := o.check(cmd.Flags(), args[0]); err != nil {
				return err
			}
			if o.holdOnly {
				return o.hold(args[0], cmd.OutOrStdout())
			}
			return o.run(args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	o.registerLease(flags)
	o.kind.register(flags)
	flags.Var(&o.wait, "wait", "how long to wait for the masters and the lock: 0 (try once), a `duration` such as 90s, or forever (default: for masters that do not vote yet, and for no holder)")
	flags.StringVar(&o.metadata, "metadata", "", "what redlock status shows of the holder, at most 1024 bytes")
	flags.IntVar(&o.conflictCode, "conflict-exit-code", cli.ExitBusy, "the exit `code` when another client has the lock")
	flags.BoolVar(&o.holdOnly, "hold", false, "hold the lock until a signal comes, without a command")
	cmd.ValidArgsFunction = completeLock(&o.masters)
	return cmd
}

// registerLease adds the flags of every lock that a command runs under.
func (o *runOptions) registerLease(flags *pflag.FlagSet) {
	o.Register(flags, defaults.NodeTimeout)
	flags.DurationVar(&o.ttl, "ttl", defaults.TTL, "how long the lock outlives us if we crash; at least 1s")
	flags.DurationVar(&o.grace, "grace", 0, "how long before the end of the validity SIGTERM comes, at most half of the TTL (default a third)")
	flags.Var(&o.warns, "warn-signal", "which `signal` the command's group gets when half of the validity has passed without a renewal: HUP, INT, QUIT, TERM, USR1 or USR2 (default none)")
	flags.Var(&o.requests, "on-request", "which `signal` the command's group gets when somebody asks for the lock (redlock unlock --ask): one of the same (default none)")
	registerDurable(flags, &o.durable)
	flags.DurationVar(&o.guard, "restart-guard", 0, "how long a master that lost its memory must not vote: the longest TTL that anybody uses there (default 30s, or the TTL if that is longer)")
}

func checkRunArgs(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if hold, _ := cmd.Flags().GetBool("hold"); hold {
		for _, flag := range []string{"warn-signal", "on-request"} {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s is for a command, and --hold has none", flag)
			}
		}
		if len(args) != 1 || dash >= 0 {
			return errors.New("--hold takes the name of the lock and no command: redlock run --hold NAME")
		}
		return nil
	}
	switch {
	case len(args) == 0 || dash == 0:
		return errors.New("the name of the lock is missing: redlock run NAME -- COMMAND [ARGS...]")
	case dash != 1:
		return errors.New("put -- between the name of the lock and the command: redlock run NAME -- COMMAND [ARGS...]")
	case len(args) == 1:
		return errors.New("the command is missing: redlock run NAME -- COMMAND [ARGS...]")
	}
	return nil
}

// check computes the defaults that depend on other flags, and refuses flags that
// cannot work, before any node is asked.
func (o *runOptions) check(flags *pflag.FlagSet, name string) error {
	if !flags.Changed("grace") {
		o.grace = o.ttl / 3
	}
	o.sitsOut = o.wait == 0 && !flags.Changed("wait")
	if !flags.Changed("restart-guard") {
		o.guard = max(defaults.TTL, o.ttl, o.kind.atLeast)
	}
	switch {
	case o.ttl < minRunTTL:
		return cli.Usage("--ttl %v: must be at least %v: in less, no process ends in time", o.ttl, minRunTTL)
	case o.grace < 0 || o.grace > o.ttl/2:
		return cli.Usage("--grace %v: must be from 0 (no SIGTERM) to half of the TTL, %v", o.grace, o.ttl/2)
	case o.conflictCode < 0 || o.conflictCode > 255:
		return cli.Usage("--conflict-exit-code %d: must be from 0 to 255", o.conflictCode)
	case o.guard == 0 && o.Grouped():
		return cli.Usage("--restart-guard 0: must be at least the TTL, %v, where --nodes gives groups: their map is kept by the guard", o.ttl)
	case o.guard != 0 && o.guard < o.ttl:
		return cli.Usage("--restart-guard %v: must be 0 (off) or at least the TTL, %v", o.guard, o.ttl)
	}
	if err := rehearseLock(func(c *redlock.Client) locker { return o.take(c, name) }, o.timed(o.Asking())...); err != nil {
		return cli.Refusal(err, o.setBy(flags))
	}
	return nil
}

// setBy says which flags set the options that other commands set by others.
func (o *runOptions) setBy(flags *pflag.FlagSet) map[string]string {
	other := map[string]string{"Metadata": o.metadataFlag}
	if !flags.Changed("restart-guard") {
		other["WithRestartGuard"] = "ttl" // which it follows
	}
	return other
}

// options are those of the client.
func (o *runOptions) options() []redlock.Option {
	return o.timed(o.masters.Options())
}

func (o *runOptions) timed(opts []redlock.Option) []redlock.Option {
	return append(opts, redlock.WithTTL(o.ttl), redlock.WithRestartGuard(o.guard))
}

const minRunTTL = time.Second

// observe has the session look at the lease when it was renewed.
func (o *runOptions) observe(e redlock.Event) {
	if e.Kind != redlock.LeaseRenewed {
		return
	}
	select {
	case o.renewed <- struct{}{}:
	default: // it will look anyway
	}
}

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
	defer o.warnOfOthers(client, name)()

	s := &session{lease: lease, renewed: o.renewed, grace: o.grace, warns: o.warns, requests: o.requests, lead: killLead(o.ttl), tokenEnv: o.kind.tokenEnv, signals: signals, terminal: procgroup.OpenTerminal(), stderr: o.stderr}
	code, err := s.run(path, argv)
	unlocked := lease.Unlock(context.Background())
	switch {
	case err != nil:
		return err
	case s.lost:
		return cli.Fail(cli.ExitLost, nil) // it has been said
	case errors.Is(unlocked, redlock.ErrLost) || errors.Is(unlocked, redlock.ErrExpired):
		return cli.Fail(cli.ExitLost, fmt.Errorf("lock %q was lost while the command ran", name))
	case unlocked != nil:
		cli.Complain(o.stderr, fmt.Errorf("%w: the lock stays until its TTL has passed", unlocked))
	}
	if code != 0 {
		return cli.Fail(code, nil)
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
		return "", cli.Fail(cli.ExitNotFound, err)
	}
	return "", cli.Fail(cli.ExitNotRun, err)
}
