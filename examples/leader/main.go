// Leader does work on one machine at a time: each of its processes campaigns, the
// leader works until it loses the lead or gets a signal, and then the next one leads.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	masters := os.Getenv("REDLOCK_NODES")
	if masters == "" {
		return errors.New("REDLOCK_NODES is not set: give it the masters, such as a:6379,b:6379,c:6379")
	}
	client, err := redlock.Dial(ctx, strings.Split(masters, ","))
	if err != nil {
		return err
	}
	defer client.Close()
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	for election := client.Election("scheduler"); ; {
		lease, err := election.Campaign(ctx, name) // waits until it leads, also for masters that are away
		if err != nil {
			return err // ctx has ended, or the client was closed
		}
		log.Printf("leads no more: %v", lead(ctx, lease))
	}
}

// lead works until the lease or ctx ends, and resigns when the work has stopped.
func lead(ctx context.Context, lease *redlock.Lease) error {
	working, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	err := work(working, lease.Token())
	return errors.Join(err, lease.Unlock(ctx))
}

// work stands for what only the leader may do. It sends the token with every write, so that
// a storage can refuse a leader that stood still and does not know yet that it leads no more.
func work(ctx context.Context, token uint64) error {
	for {
		select {
		case <-time.After(time.Second):
			log.Printf("leads, with token %d", token)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
