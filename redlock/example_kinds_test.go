package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Every lease of a fenced lock has a higher token than the one before. The resource
// refuses whoever comes with a lower one.
func ExampleFenced() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	storage := &redlock.Fence{}
	orders := client.Mutex("orders", redlock.Fenced())
	first, err := orders.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	old := first.Token()
	first.Unlock(ctx)

	second, err := orders.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Unlock(ctx)
	fmt.Println("the second holder writes:", storage.Check("orders", second.Token()))
	err = storage.Check("orders", old)
	fmt.Println("the first, which was paused, is refused:", errors.Is(err, redlock.ErrStale))
	// Output:
	// the second holder writes: <nil>
	// the first, which was paused, is refused: true
}

// Every instance starts the job at the same minute. It is short, and runs once.
func ExampleAtLeast() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	nightly := client.Mutex("nightly", redlock.AtLeast(2*time.Second))
	defer client.ForceUnlock(ctx, "nightly") // an operator frees it earlier

	for range 3 {
		lease, err := nightly.TryLock(ctx)
		if err != nil {
			refused := new(redlock.Error)
			fmt.Println("another instance ran it:", errors.As(err, &refused) && refused.Remaining > 0)
			continue
		}
		fmt.Println("the job runs")
		lease.Unlock(ctx)
	}
	// Output:
	// the job runs
	// another instance ran it: true
	// another instance ran it: true
}

// All or none are held, whatever the order of the names.
func ExampleClient_Multi() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()

	both, err := client.Multi([]string{"account-7", "account-3"}).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Mutex("account-3").TryLock(ctx)
	fmt.Println("account-3 is taken:", errors.Is(err, redlock.ErrTaken))
	fmt.Println("unlock:", both.Unlock(ctx))
	// Output:
	// account-3 is taken: true
	// unlock: <nil>
}

// Many read at once; a writer is alone, and may go on as a reader.
func ExampleRWMutex() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	catalogue := client.RWMutex("catalogue")

	writer, err := catalogue.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = catalogue.TryRLock(ctx)
	fmt.Println("beside a writer nobody reads:", errors.Is(err, redlock.ErrTaken))
	if err := catalogue.Downgrade(ctx, writer); err != nil {
		log.Fatal(err)
	}
	reader, err := catalogue.TryRLock(ctx)
	fmt.Println("beside a reader others do:", err)
	fmt.Println("unlock:", writer.Unlock(ctx), reader.Unlock(ctx))
	// Output:
	// beside a writer nobody reads: true
	// beside a reader others do: <nil>
	// unlock: <nil> <nil>
}

// No more than two at once.
func ExampleSemaphore() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	workers := client.Semaphore("workers", 2)

	first, err := workers.Acquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	second, err := workers.Acquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	_, err = workers.TryAcquire(ctx, 1)
	fmt.Println("a third is refused:", errors.Is(err, redlock.ErrTaken))
	fmt.Println("release:", first.Unlock(ctx), second.Unlock(ctx))
	// Output:
	// a third is refused: true
	// release: <nil> <nil>
}

// The permits of a semaphore can be fenced, too: a resource tells their holders apart,
// and who came later.
func ExampleFenced_semaphore() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	uploads := client.Semaphore("uploads", 2, redlock.Fenced())

	first, err := uploads.Acquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	second, err := uploads.Acquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the second came later:", second.Token() > first.Token())
	fmt.Println("release:", first.Unlock(ctx), second.Unlock(ctx))
	// Output:
	// the second came later: true
	// release: <nil> <nil>
}

// Who waits for a fair lock gets it in the order in which it came.
func ExampleFair() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()

	lease, err := client.Mutex("counter", redlock.Fair()).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("unlock:", lease.Unlock(ctx))
	// Output:
	// unlock: <nil>
}

// The lock stays in this process, until another one waits for it.
func ExampleCached() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	orders := client.Mutex("orders", redlock.Cached())

	first, err := orders.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("unlock:", first.Unlock(ctx))
	second, err := orders.Lock(ctx) // asks no master
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("valid:", first.Valid(), second.Valid())
	fmt.Println("unlock:", second.Unlock(ctx))
	// Output:
	// unlock: <nil>
	// valid: false true
	// unlock: <nil>
}

// Whoever has the lease's context may lock again.
func ExampleReentrant() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	orders := client.Mutex("orders", redlock.Reentrant())

	err := redlock.Do(ctx, orders, func(ctx context.Context) error {
		inner, err := orders.Lock(ctx)
		if err != nil {
			return err
		}
		err = inner.Unlock(ctx)
		fmt.Println("still held:", inner.Valid())
		return err
	})
	fmt.Println("error:", err)
	// Output:
	// still held: true
	// error: <nil>
}

// The latch opens when three have arrived. Who reports twice counts once.
func ExampleLatch() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	loaded := client.Latch("parts loaded", 3)

	for _, part := range []string{"a", "b", "b", "c"} {
		if err := loaded.Arrive(ctx, part); err != nil {
			log.Fatal(err)
		}
	}
	n, err := loaded.Count(ctx)
	fmt.Println(n, "have arrived:", err)
	fmt.Println("wait:", loaded.Wait(ctx))
	// Output:
	// 3 have arrived: <nil>
	// wait: <nil>
}

// One leads, and everybody can find out who.
func ExampleElection_Run() {
	client, end := exampleClient()
	defer end()
	ctx, stop := context.WithCancel(context.Background())
	scheduler := client.Election("scheduler")

	err := scheduler.Run(ctx, "http://10.0.0.7", func(ctx context.Context) error {
		fmt.Println("leads:", scheduler.IsLeader())
		stop() // SIGTERM, say
		<-ctx.Done()
		fmt.Println("still leads:", scheduler.IsLeader())
		return nil
	})
	fmt.Println(err, scheduler.IsLeader())
	// Output:
	// leads: true
	// still leads: true
	// context canceled false
}

func ExampleElection() {
	ctx := context.Background()
	client, end := exampleClient()
	defer end()
	scheduler := client.Election("scheduler")

	lease, err := scheduler.Campaign(ctx, "http://10.0.0.7")
	if err != nil {
		log.Fatal(err)
	}
	leader, err := scheduler.Leader(ctx)
	fmt.Println(leader.Value, err)
	if err := scheduler.Proclaim(ctx, lease, "http://10.0.0.7/v2"); err != nil {
		log.Fatal(err)
	}
	for leader := range scheduler.Observe(ctx) {
		fmt.Println("observed", leader.Value)
		break
	}
	fmt.Println("resign:", lease.Unlock(ctx))
	// Output:
	// http://10.0.0.7 <nil>
	// observed http://10.0.0.7/v2
	// resign: <nil>
}

// The leader resigns in favour of a client that waits.
func ExampleElection_Transfer() {
	ctx := context.Background()
	client, masters, end := exampleMasters(redlock.WithClientID("old"))
	defer end()
	scheduler := client.Election("scheduler")
	lease, err := scheduler.Campaign(ctx, "http://10.0.0.7")
	if err != nil {
		log.Fatal(err)
	}
	next := make(chan *redlock.Lease)
	go func() {
		lease, err := masters.Client(redlock.WithClientID("new")).Election("scheduler").Campaign(ctx, "http://10.0.0.8")
		if err != nil {
			log.Fatal(err)
		}
		next <- lease
	}()

	for errors.Is(err, redlock.ErrNotQueued) || err == nil && lease.Valid() {
		err = scheduler.Transfer(ctx, lease, "new") // until it waits
	}

	lease = <-next
	leader, _ := scheduler.Leader(ctx)
	fmt.Println(err, leader.Client, leader.Value)
	lease.Unlock(ctx)
	// Output:
	// <nil> new http://10.0.0.8
}
