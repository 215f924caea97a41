package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A program dials its masters once, and makes as many locks as it likes.
func ExampleDial() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client, err := redlock.Dial(ctx, []string{
		"redis-a:6379", "redis-b:6379", "redis-c:6379", "redis-d:6379", "redis-e:6379",
	}, redlock.WithTTL(10*time.Second))
	if err != nil {
		log.Fatal(err) // too few of them answered; the error says what each of them did
	}
	defer client.Close()
}

// The masters end a connection when the token that it was logged in with expires.
func ExampleCredentials() {
	fetch := func(ctx context.Context, master string) (token string, expires time.Time, err error) {
		return "token for " + master, time.Now().Add(12 * time.Hour), nil // by the library of the cloud
	}
	login := redlock.WithCredentials(func(ctx context.Context, master string) (redlock.Credentials, error) {
		token, expires, err := fetch(ctx, master)
		return redlock.Credentials{User: "locks", Password: token, Expires: expires}, err
	})

	masters := []string{"rediss://10.0.0.1:6379", "rediss://10.0.0.2:6379", "rediss://10.0.0.3:6379"}
	client, err := redlock.Dial(context.Background(), masters, login)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

func ExampleMutex_Lock() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()

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
	fmt.Println(lease.Valid())
	// Output: true
}

// report stands for the work that one process at a time may do.
func report(ctx context.Context) error { return ctx.Err() }

func ExampleMutex_TryLock() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()

	first, err := client.Mutex("deploy").TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Mutex("deploy").TryLock(ctx)
	fmt.Println("the second is told that it is taken:", errors.Is(err, redlock.ErrTaken))
	fmt.Println("unlock:", first.Unlock(ctx))
	// Output:
	// the second is told that it is taken: true
	// unlock: <nil>
}

// Do unlocks also when the function panics. It returns the function's error, and
// ErrLost or ErrExpired if the lock was lost meanwhile.
func ExampleDo() {
	client, end := exampleClient()
	defer end()

	err := redlock.Do(context.Background(), client.Mutex("nightly-report"), func(ctx context.Context) error {
		fmt.Println("working")
		return report(ctx) // ctx ends with the lease
	})
	fmt.Println(err)
	// Output:
	// working
	// <nil>
}

// The error of a failed operation tells busy from broken, and lists what every
// master said.
func ExampleError() {
	client, masters, end := exampleMasters()
	defer end()
	masters.Kill(0, 1, 2)

	_, err := client.Mutex("name").TryLock(context.Background())

	switch failed := new(redlock.Error); {
	case errors.Is(err, redlock.ErrTaken):
		fmt.Println("another client has it")
	case errors.Is(err, redlock.ErrNoQuorum) && errors.As(err, &failed):
		for _, v := range failed.Votes {
			if v.Vote == quorum.Failed {
				fmt.Println(v)
			}
		}
	}
	// Output:
	// master-0 not connected
	// master-1 not connected
	// master-2 not connected
}

func ExampleClient_Inspect() {
	ctx := context.Background()
	client, end := exampleClient(redlock.WithClientID("web1"))
	defer end()
	lease, err := client.Mutex("deploy", redlock.Metadata("release 7")).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	holder, err := client.Inspect(ctx, "deploy")
	fmt.Println(holder.Held, holder.Client, holder.Metadata, err)
	// Output: true web1 release 7 <nil>
}

// The holder may still be working: be sure that it is not.
func ExampleClient_ForceUnlock() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	lease, err := client.Mutex("deploy", redlock.NoRenew()).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	_, err = client.ForceUnlock(ctx, "deploy")
	fmt.Println(err)
	fmt.Println("the holder finds out:", errors.Is(lease.Unlock(ctx), redlock.ErrLost))
	// Output:
	// <nil>
	// the holder finds out: true
}

// Without renewal, a lease ends by itself unless it is extended.
func ExampleLease_Extend() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	lease, err := client.Mutex("batch", redlock.TTL(10*time.Second), redlock.NoRenew()).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	err = lease.Extend(ctx, 20*time.Second)
	fmt.Println(err, time.Until(lease.Until()) > 15*time.Second)
	// Output: <nil> true
}

// The cause of the end of a lease's context says what happened to it.
func ExampleLease_Context() {
	ctx := context.Background()
	client, masters, end := exampleMasters(redlock.WithTTL(100*time.Millisecond), redlock.WithNodeTimeout(50*time.Millisecond))
	defer end()
	lease, err := client.Mutex("name").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	masters.LoseQuorum() // nobody can renew it any more

	<-lease.Done()
	fmt.Println(context.Cause(lease.Context()))
	// Output: expired
}

// Another client asks for the lock, and its holder decides to release it.
func ExampleRequest() {
	ctx := context.Background()
	client, end := exampleClient(redlock.WithClientID("deployer"))
	defer end()
	lease, err := client.Mutex("orders").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	requests := lease.Requested()

	fmt.Println("asked:", client.RequestRelease(ctx, "orders", "a new version is rolled out"))

	select {
	case r := <-requests:
		fmt.Println(r.Client+":", r.Reason)
	case <-lease.Done():
	}
	fmt.Println("unlock:", lease.Unlock(ctx))
	// Output:
	// asked: <nil>
	// deployer: a new version is rolled out
	// unlock: <nil>
}

// Half of the validity is left to save what can be saved.
func ExampleLease_AtRisk() {
	ctx := context.Background()
	client, masters, end := exampleMasters(redlock.WithTTL(2 * time.Second))
	defer end()
	lease, err := client.Mutex("name").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	risk := lease.AtRisk()

	masters.LoseQuorum() // nobody can renew it any more

	<-risk
	fmt.Println(lease.Valid(), lease.Remaining() > 500*time.Millisecond)
	masters.Heal()
	lease.Unlock(ctx)
	// Output: true true
}

// Work that goes on when its context has ended is stopped before another client can have the lock.
func ExampleStopWithin() {
	ctx := context.Background()
	client, masters, end := exampleMasters(redlock.WithTTL(2 * time.Second))
	defer end()
	stopped := make(chan error, 1)
	stop := func(cause error) { stopped <- cause } // a real one ends the process: redlock.Exit(1)
	lease, err := client.Mutex("orders", redlock.StopWithin(500*time.Millisecond, stop)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	masters.LoseQuorum() // nobody can renew it any more

	<-lease.Done() // half a second is left to end the work and unlock
	fmt.Println(<-stopped)
	// Output: redlock: hold "orders": expired
}

// A holder that wrote its lease's value down goes on after a crash.
func ExampleMutex_Adopt() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	orders := client.Mutex("orders")
	before, err := orders.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	written := before.Value() // to a file, say; then the process crashes

	lease, err := orders.Adopt(ctx, written)
	switch {
	case errors.Is(err, redlock.ErrTaken), errors.Is(err, redlock.ErrNotHeld):
		fmt.Println("it was lost meanwhile: begin anew")
		return
	case err != nil:
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	fmt.Println("the same lease:", lease.Value() == written)
	// Output: the same lease: true
}
