package redlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// An observer counts, and returns: it holds up the locks that it is told of. The
// packages in contrib/ give the same events to Prometheus and OpenTelemetry.
func ExampleWithObserver() {
	ctx := context.Background()
	count := func(e redlock.Event) {
		if e.Node == "" {
			fmt.Println(e.Kind, e.Lock, e.Name, e.Result())
		}
	}
	client, end := exampleClient(redlock.WithObserver(count))
	defer end()

	lease, err := client.Mutex("orders").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Mutex("orders").TryLock(ctx); err == nil {
		log.Fatal("it is taken")
	}
	lease.Unlock(ctx)
	// Output:
	// acquired mutex orders ok
	// failed mutex orders taken
	// released mutex orders released
}

// A service that cannot get locks says so to whoever asks for its health.
func ExampleClient_Nodes() {
	client, end := exampleClient()
	defer end()

	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		nodes, voting := client.Nodes(), 0
		for _, n := range nodes {
			if n.State == node.StateConnected && n.Quarantine == 0 && !n.Silent {
				voting++
			}
		}
		if voting <= len(nodes)/2 {
			http.Error(w, fmt.Sprintf("%d of %d masters vote", voting, len(nodes)), http.StatusServiceUnavailable)
		}
	})
}

// A row that has a column for the token refuses a holder that was paused beyond
// the end of its lease. The check and the write are one statement.
func ExampleLease_Token() {
	var db *sql.DB
	pay := func(ctx context.Context, lease *redlock.Lease, invoice, total int) error {
		result, err := db.ExecContext(ctx, `UPDATE invoices SET total = ?, token = ? WHERE id = ? AND token <= ?`,
			total, lease.Token(), invoice, lease.Token())
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(redlock.ErrStale, err)
		}
		return nil
	}
	_ = pay // under client.Mutex("invoices", redlock.Fenced())
}

// A Fence guards a resource inside of this process.
func ExampleFence() {
	var fence redlock.Fence
	fmt.Println("the holder with token 7:", fence.Check("invoices", 7))
	fmt.Println("the one before:", errors.Is(fence.Check("invoices", 6), redlock.ErrStale))
	// Output:
	// the holder with token 7: <nil>
	// the one before: true
}

// A Holder has a Waiter for each client in the queue, in their order.
func ExampleWaiter() {
	ctx, cancel := context.WithCancel(context.Background())
	client, end := exampleClient(redlock.WithClientID("web1"))
	defer end()
	lease, err := client.Mutex("deploy").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	gaveUp := make(chan error)
	go func() {
		_, err := client.Mutex("deploy", redlock.Metadata("release 8")).Lock(ctx)
		gaveUp <- err
	}()

	var queue []redlock.Waiter
	for len(queue) == 0 {
		holder, err := client.Inspect(ctx, "deploy")
		if err != nil {
			log.Fatal(err)
		}
		queue = holder.Queue
	}

	fmt.Println(queue[0].Client, queue[0].Metadata, time.Since(queue[0].Since) < time.Hour)
	cancel()
	<-gaveUp
	// Output: web1 release 8 true
}

// Of a semaphore, a Holder has a Share for each holder of permits; a NodeView is what
// one master says.
func ExampleHolder() {
	ctx := context.Background()
	client, end := exampleClient(redlock.WithClientID("web1"))
	defer end()
	lease, err := client.Semaphore("gpu", 4).Acquire(ctx, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	holder, err := client.Inspect(ctx, "gpu")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(holder.Kind, holder.Available, "of", holder.Permits, "free")
	for _, share := range holder.Shares {
		fmt.Println(share.Client, "has", len(share.Slots))
	}
	agree := 0
	for _, view := range holder.Nodes {
		if view.Err == nil && len(view.Shares) == 1 {
			agree++
		}
	}
	fmt.Println("a quorum of the masters says so:", agree >= 3)
	// Output:
	// semaphore 1 of 4 free
	// web1 has 3
	// a quorum of the masters says so: true
}
