//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// waiting is a line on a terminal that says why we wait, written anew every second. A
// nil *waiting says nothing.
type waiting struct {
	client  *redlock.Client
	notices *cli.Notices
	name    string
	free    string
	w       io.Writer
	over    chan struct{}
	silent  chan struct{} // closed when nothing will be written any more
}

// tellAfter is how long a wait may go unexplained.
const tellAfter = 500 * time.Millisecond

// announce starts to say why we wait, on a terminal.
func (o *runOptions) announce(client *redlock.Client, name string) *waiting {
	if o.wait == 0 || !cli.IsTerminal(o.stderr) {
		return nil
	}
	w := &waiting{client: client, notices: o.Notices, name: name, free: o.free, w: o.stderr, over: make(chan struct{}), silent: make(chan struct{})}
	go w.tell()
	return w
}

// end stops it, and leaves nothing on the terminal.
func (w *waiting) end() {
	if w == nil {
		return
	}
	close(w.over)
	<-w.silent
}

func (w *waiting) tell() {
	defer close(w.silent)
	for pause := tellAfter; ; pause = time.Second {
		select {
		case <-w.over:
			fmt.Fprint(w.w, cli.EraseLine)
			return
		case <-time.After(pause):
			fmt.Fprint(w.w, cli.EraseLine+cli.Cut(w.why(), cli.Width(w.w)-1))
		}
	}
}

func (w *waiting) why() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	what := "waiting for " + cli.Printable(w.name) + ": "
	h, err := w.client.Inspect(ctx, w.name)
	switch {
	case err != nil:
		answer := 0
		for _, v := range h.Nodes {
			if v.Err == nil {
				answer++
			}
		}
		return what + fmt.Sprintf("only %d of %d masters answer", answer, len(h.Nodes))
	case h.Held:
		return what + strings.TrimSuffix(holder(h), unlessRenewed)
	}
	if masters, rest := w.notices.Quarantined(); masters > len(h.Nodes)-quorum.Size(len(h.Nodes)) {
		return what + fmt.Sprintf("%d masters vote in %v: they may have forgotten locks", masters, whole(rest))
	}
	return what + w.free
}
