// Quickstart runs a report under a lock. README.md shows this program.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

func main() {
	// ^C ends the context: the lock is released, and no other client waits for its TTL.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	masters := os.Getenv("REDLOCK_NODES") // host:port, redis://user:password@host:port, ... with commas between
	if masters == "" {
		return errors.New("REDLOCK_NODES is not set: give it the masters, such as a:6379,b:6379,c:6379")
	}
	client, err := redlock.Dial(ctx, strings.Split(masters, ","))
	if err != nil {
		return err // too few masters answered; the error says what each of them did
	}
	defer client.Close()

	// Do waits for its turn, or until ctx ends. It runs report under the lock, which renews
	// itself, and unlocks. If the lock is lost, report's context ends before another client
	// can have it.
	return redlock.Do(ctx, client.Mutex("nightly-report"), report)
}

// report stands for the work that one process at a time may do.
func report(ctx context.Context) error {
	for step := range 5 {
		fmt.Println("step", step+1, "of 5")
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx) // ^C, or the lock was lost: stop
		}
	}
	return nil
}
