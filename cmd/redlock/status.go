package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// exitFree says, in redlock status only, that nobody holds the lock.
const exitFree = 1

func newStatusCommand() *cobra.Command {
	var m masters
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags] NAME",
		Short: "Show who holds a lock",
		Long: `Status asks every master who holds the lock NAME. It changes nothing.

The exit code is 0 when somebody holds the lock, and otherwise
    1  nobody does: no value is on a quorum of the masters
   64  the command line makes no sense
   69  no quorum: too few masters answered`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := m.inspect(args[0])
			if h.Nodes != nil {
				show := showText
				if asJSON {
					show = showJSON
				}
				err = errors.Join(err, show(cmd.OutOrStdout(), args[0], h))
			}
			switch {
			case err != nil:
				return failed(err)
			case !h.Held:
				return &exit{exitFree, nil}
			}
			return nil
		},
	}
	m.register(cmd.Flags(), redlock.DefaultNodeTimeout)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (m *masters) inspect(name string) (redlock.Holder, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
	defer cancel()
	// Without a restart guard, nothing is written to any master.
	opts := append(m.options(), redlock.WithRestartGuard(0))
	if err := rehearse(name, redlock.NoRenew(), opts...); err != nil {
		return redlock.Holder{}, err
	}
	client, err := m.dial(ctx, io.Discard, opts...) // what is wrong with a master, the answer says
	if err != nil {
		return redlock.Holder{}, err
	}
	defer client.Close()
	return client.Inspect(ctx, name)
}

// holder describes who holds a lock.
func holder(h redlock.Holder) string {
	who := "by another library's client"
	if h.Client != "" {
		who = "by " + printable(h.Client)
	}
	if h.Metadata != "" {
		who += fmt.Sprintf(" (%s)", printable(h.Metadata))
	}
	return fmt.Sprintf("held %s, for another %s unless renewed", who, seconds(h.Remaining))
}

func showText(w io.Writer, name string, h redlock.Holder) error {
	if h.Held {
		fmt.Fprintf(w, "%s: %s\n", name, holder(h))
	} else {
		fmt.Fprintf(w, "%s: no quorum of the masters says that it is held\n", name)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range h.Nodes {
		fmt.Fprintf(t, "  %s\t%s\n", v.Node, view(v))
	}
	return t.Flush()
}

func view(v redlock.NodeView) string {
	switch {
	case v.Err != nil:
		if ne := new(node.Error); errors.As(v.Err, &ne) {
			return ne.Err.Error() // the node is named beside it
		}
		return v.Err.Error()
	case v.Value == "":
		return "free"
	case v.Remaining < 0:
		return printable(v.Value) + "\tno expiry"
	}
	return printable(v.Value) + "\t" + seconds(v.Remaining)
}

// printable quotes what could move a terminal's cursor: anybody may have stored
// it.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }

// status is what --json prints.
type status struct {
	Name        string       `json:"name"`
	Held        bool         `json:"held"`
	Value       string       `json:"value,omitempty"`
	Client      string       `json:"client,omitempty"`
	Metadata    string       `json:"metadata,omitempty"`
	RemainingMS int64        `json:"remaining_ms,omitempty"`
	Nodes       []nodeStatus `json:"nodes"`
}

type nodeStatus struct {
	Node        string `json:"node"`
	Value       string `json:"value,omitempty"`
	RemainingMS int64  `json:"remaining_ms,omitempty"`
	Error       string `json:"error,omitempty"`
}

func showJSON(w io.Writer, name string, h redlock.Holder) error {
	s := status{Name: name, Held: h.Held, Value: h.Value, Client: h.Client, Metadata: h.Metadata, RemainingMS: h.Remaining.Milliseconds()}
	for _, v := range h.Nodes {
		n := nodeStatus{Node: v.Node, Value: v.Value, RemainingMS: v.Remaining.Milliseconds()}
		if v.Err != nil {
			n.Error = v.Err.Error()
		}
		s.Nodes = append(s.Nodes, n)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(s)
}
