// Chaos runs clients in processes of their own against real redis-servers
// while both are stopped, killed, cut off and made to forget, and checks that
// no two clients held a lock at the same time and that all other promises were kept.
//
//	go run ./internal/cmd/chaos --duration 1m --seed 7
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/chaos"
	"github.com/quorumlock/quorumlock/internal/progress"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	config        chaos.Config
	runs          int
	only, without string
	html, dir     string
	log           bool
}

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "chaos [flags]",
		Short: "Break real masters and clients, and look for two holders",
		Long: `Chaos starts redis-servers and clients, each a process of its own, has a seeded
nemesis at both, and checks what the clients wrote down: no two holders of a
lock at once, no lost update, no loss announced too late, no key left, and
everybody served again when it is over. The exit code is 1 if something was
found. The same seed has the same faults at the same times; what they meet
depends on the machine.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.config.Seed, "seed", 0, "draw the faults from this seed (default: a random one)")
	f.IntVar(&o.runs, "runs", 1, "so many runs, each with the next seed")
	f.DurationVar(&o.config.Duration, "duration", 3*time.Minute, "how long each run has faults")
	f.IntVar(&o.config.Masters, "masters", 5, "how many redis-servers")
	f.IntVar(&o.config.Clients, "clients", 5, "how many client processes at a time")
	f.StringVar(&o.only, "only", "", "only these `faults`, separated by commas")
	f.StringVar(&o.without, "without", "", "all but these `faults`")
	f.BoolVar(&o.config.Unguarded, "unguarded", false, "switch the restart guard off, to see two holders being found")
	f.StringVar(&o.html, "html", "", "write a page with the timeline to this `file`")
	f.StringVar(&o.dir, "dir", "", "keep journals and logs in this `folder` (default: only if something is found)")
	f.BoolVar(&o.log, "log", false, "print every fault as it happened")
	cmd.AddCommand(&cobra.Command{
		Use: "client", Hidden: true, Args: cobra.NoArgs, Short: "Be a client until standard input ends",
		RunE: func(cmd *cobra.Command, _ []string) error { return chaos.ServeClient(os.Stdin, os.Stderr) },
	}, newSoakCommand())
	return cmd
}

var errFound = errors.New("something was found that must not be")

func (o *options) run(cmd *cobra.Command) error {
	if err := o.prepare(cmd); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	out := cmd.OutOrStdout()
	var reports []*chaos.Report
	ok := true
	for range o.runs {
		report, err := o.once(ctx, out)
		if err != nil {
			return err
		}
		reports, ok = append(reports, report), ok && report.OK()
		if ctx.Err() != nil {
			break
		}
		o.config.Seed++
	}
	if o.runs > 1 {
		chaos.WriteTotal(out, reports)
	}
	if !ok {
		return errFound
	}
	return nil
}

func (o *options) prepare(cmd *cobra.Command) (err error) {
	if !cmd.Flags().Changed("seed") {
		o.config.Seed = rand.Uint64N(1_000_000)
	}
	if o.only != "" && o.without != "" {
		return errors.New("--only and --without exclude each other")
	}
	if o.runs < 1 {
		return fmt.Errorf("--runs %d: must be at least 1", o.runs)
	}
	o.config.Kinds = chaos.Kinds
	if o.only != "" {
		if o.config.Kinds, err = chaos.KindsOf(o.only); err != nil {
			return fmt.Errorf("--only: %w", err)
		}
	}
	without, err := chaos.KindsOf(o.without)
	if err != nil {
		return fmt.Errorf("--without: %w", err)
	}
	o.config.Kinds = slices.DeleteFunc(slices.Clone(o.config.Kinds), func(k *chaos.Kind) bool { return slices.Contains(without, k) })
	o.config.Workloads = chaos.Workloads
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.config.ClientCommand = []string{self, "client"}
	return nil
}

// once does one run and reports it.
func (o *options) once(ctx context.Context, out io.Writer) (*chaos.Report, error) {
	config := o.config
	dir, keep, err := o.folder()
	if err != nil {
		return nil, err
	}
	config.Dir = dir
	config.Progress = progress.Share(os.Stderr, fmt.Sprint("seed ", config.Seed))
	report, err := chaos.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	if o.log || !report.OK() {
		report.WriteLog(out)
		fmt.Fprintln(out)
	}
	report.WriteText(out)
	if !report.OK() {
		keep = true
		fmt.Fprintf(out, "journals, logs and pages: %s\n", dir)
		err = errors.Join(writePage(filepath.Join(dir, "chaos.html"), report), replay(out, dir, report))
	}
	if o.html != "" {
		err = errors.Join(err, writePage(o.html, report))
	}
	if !keep {
		os.RemoveAll(dir)
	}
	fmt.Fprintln(out)
	return report, err
}

// folder is where a run keeps its journals, and whether they stay. It is new: journals
// of another run beside them would be taken for its own.
func (o *options) folder() (dir string, keep bool, err error) {
	if o.dir == "" {
		dir, err = os.MkdirTemp("", "chaos-")
		return dir, false, err
	}
	dir = filepath.Join(o.dir, fmt.Sprintf("seed-%d", o.config.Seed))
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return "", false, err
	}
	return dir, true, os.Mkdir(dir, 0o700)
}

// replay looks for two holders that were found in the simulator.
func replay(out io.Writer, dir string, report *chaos.Report) error {
	said, err := report.Replay(dir)
	if said != "" {
		fmt.Fprintln(out, said)
	}
	return err
}

func writePage(name string, report *chaos.Report) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteHTML(f), f.Close())
}
