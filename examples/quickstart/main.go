// Quickstart runs a report under a lock. README.md shows this program.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	masters := strings.Split(os.Getenv("REDLOCK_NODES"), ",") // host:port, redis://user:password@host:port, ...
	client, err := redlock.Dial(ctx, masters)
	if err != nil {
		return err // too few masters answered; the error says what each of them did
	}
	defer client.Close()

	lease, err := client.Mutex("nightly-report").Lock(ctx) // waits for its turn, or until ctx ends
	if err != nil {
		return err
	}
	defer lease.Unlock(ctx)

	// The lease is renewed by itself. If it is lost, its context ends before
	// anybody else can have the lock.
	return report(lease.Context())
}

// report stands for the work that one process at a time may do.
func report(ctx context.Context) error {
	for step := range 5 {
		fmt.Println("step", step+1, "of 5")
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx) // the lock was lost: stop
		}
	}
	return nil
}
