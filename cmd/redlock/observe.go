package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/redlock"
)

func newObserveCommand() *cobra.Command {
	var m masters
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "observe [flags] NAME",
		Short: "Show who leads, and every new leader",
		Long: `Observe prints a line for the leader of the election NAME, and one more whenever
the leader or its value changes, until ^C: the value, the
fencing token, and the client id. It says when no client leads. With --json each
line is a JSON object, with the token 0 while no client leads. It changes
nothing.

The exit code is 0 at ^C, or
    1  the answer cannot be written
   64  the command line makes no sense
   69  no quorum: too few masters answered
   78  the masters refuse us: wrong password, no permission, another group of
       masters, or one server is listed twice`,
		Example: `  redlock observe scheduler
  redlock observe --json scheduler | jq -r .says`,
		Args: cli.OneArgument("the name of the election"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return m.observe(ctx, cmd, args[0], asJSON)
		},
	}
	m.Register(cmd.Flags(), defaults.NodeTimeout)
	cli.JSONFlag(cmd, &asJSON)
	cmd.ValidArgsFunction = completeLock(&m)
	return cmd
}

func (m *masters) observe(ctx context.Context, cmd *cobra.Command, name string, asJSON bool) error {
	patience, cancel := context.WithTimeout(ctx, m.Patience())
	defer cancel()
	client, err := m.client(patience, name, cmd.ErrOrStderr())
	switch {
	case ctx.Err() != nil: // a signal ended it, as it may at any time
		if err == nil {
			client.Close()
		}
		return nil
	case err != nil:
		return err
	}
	defer client.Close()
	m.Notices.Show()
	show := showLeader
	if asJSON {
		show = showLeaderJSON
	}
	if w := cmd.ErrOrStderr(); cli.IsTerminal(w) {
		fmt.Fprintln(w, "leaders of "+cli.Printable(name)+", until ^C:")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for leader := range leaders(ctx, client.Election(name)) {
		if err := show(cmd.OutOrStdout(), leader); err != nil {
			return err
		}
	}
	return nil
}

// leaders delivers every leader that is observed, and a leader without a token whenever
// no client leads, until ctx ends. It looks twice before it says so: a leader
// that resigns is often followed by the next within moments.
func leaders(ctx context.Context, e *redlock.Election) <-chan redlock.Leader {
	observed, all := make(chan redlock.Leader), make(chan redlock.Leader)
	send := func(to chan<- redlock.Leader, l redlock.Leader) bool {
		select {
		case to <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(observed)
		for leader := range e.Observe(ctx) {
			if !send(observed, leader) {
				return
			}
		}
	}()
	go func() {
		defer close(all)
		look := time.NewTicker(vacancyPause)
		defer look.Stop()
		const said = 2
		for nobody := 0; ; {
			select {
			case leader, ok := <-observed:
				if nobody = 0; !ok || !send(all, leader) {
					return
				}
			case <-look.C:
				if nobody >= said {
					continue
				}
				if _, err := e.Leader(ctx); !errors.Is(err, redlock.ErrNoLeader) {
					nobody = 0
				} else if nobody++; nobody == said && !send(all, redlock.Leader{}) {
					return
				}
			}
		}
	}()
	return all
}

// vacancyPause is how often to look whether anybody leads.
const vacancyPause = 500 * time.Millisecond

func showLeader(w io.Writer, l redlock.Leader) error {
	if l.Token == 0 {
		_, err := fmt.Fprintln(w, "nobody leads")
		return err
	}
	says := "says nothing"
	if l.Value != "" {
		says = cli.Printable(l.Value)
	}
	_, err := fmt.Fprintf(w, "%s  token %d  %s\n", says, l.Token, cli.Printable(l.Client))
	return err
}

// leaderStatus is what --json prints of a leader.
type leaderStatus struct {
	Client string `json:"client"`
	Says   string `json:"says"`
	Token  uint64 `json:"token"`
	Number int64  `json:"number"` // counts its proclamations since its campaign
}

func showLeaderJSON(w io.Writer, l redlock.Leader) error {
	b, err := json.Marshal(leaderStatus{l.Client, l.Value, l.Token, l.Number})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, cli.EscapeJSON(string(b)))
	return err
}
