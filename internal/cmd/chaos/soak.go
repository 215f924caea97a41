package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/progress"
	"github.com/quorumlock/quorumlock/internal/soak"
)

func newSoakCommand() *cobra.Command {
	var short bool
	var only []string
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "soak [flags]",
		Short: "Load clients and real masters for long, and look for what grows",
		Long: `Soak starts redis-servers and burdens them: 10,000 leases through rolling
restarts, 100,000 leases with a short TTL, 2,000 waiters on one lock, of one
client and of 50, and 500 times Dial, Lock, Close. Memory, goroutines,
connections and keys must not grow; the exit code is 1 if they did, or if a
lease was lost. The two that hold leases take ten minutes each.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			size := soak.Full
			if short {
				size = soak.Short
			}
			if duration > 0 {
				size.Duration = duration
			}
			loads, err := soak.Only(only, soak.Loads(size))
			if err != nil {
				return err
			}
			return runLoads(cmd, loads)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&short, "short", false, "an impression, in about three minutes")
	f.DurationVar(&duration, "duration", 0, "how long leases are held (default 10m, short 45s)")
	f.StringSliceVar(&only, "only", nil, "only these `loads`: leases, many, waiters, crowd, dials")
	return cmd
}

func runLoads(cmd *cobra.Command, loads []soak.Load) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok := true
	for _, l := range loads {
		report, err := soak.Run(ctx, l, progress.Share(os.Stderr, l.Name))
		if err != nil {
			return err
		}
		report.WriteText(cmd.OutOrStdout())
		ok = ok && report.OK()
		if ctx.Err() != nil {
			break
		}
	}
	if !ok {
		return errFound
	}
	return nil
}
