package redlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/quorumlock/redlock"
)

// The text between the two cuts is also in README.md; a test compares them.
func Example() {
	masters, stop := embeddedMasters(5)
	defer stop()

	// cut
	ctx := context.Background()
	client, err := redlock.Dial(ctx, masters) // host:port, redis://user:password@host:port, ...
	if err != nil {
		log.Fatal(err) // too few of them answered; the error says what each of them did
	}
	defer client.Close()

	lease, err := client.Mutex("nightly-report").Lock(ctx) // waits for its turn, or until ctx ends
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	// The lease is renewed by itself. If it is lost, its context ends before
	// anybody else can have the lock.
	if err := report(lease.Context()); err != nil {
		log.Print(err, ", lease: ", lease.Err())
	}
	// cut

	fmt.Println(lease.Valid())
	// Output: true
}

// report stands for the work that one process at a time may do.
func report(ctx context.Context) error { return ctx.Err() }

// embeddedMasters starts masters inside this process. Their keys do not expire.
func embeddedMasters(n int) (addrs []string, stop func()) {
	var all []*miniredis.Miniredis
	for range n {
		m, err := miniredis.Run()
		if err != nil {
			log.Fatal(err)
		}
		all, addrs = append(all, m), append(addrs, m.Addr())
	}
	return addrs, func() {
		for _, m := range all {
			m.Close()
		}
	}
}
