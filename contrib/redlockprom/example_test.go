package redlockprom_test

import (
	"context"
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorumlock/quorumlock/contrib/redlockprom"
	"github.com/quorumlock/quorumlock/redlock"
)

func Example() {
	ctx := context.Background()
	metrics := redlockprom.New("")
	client, err := redlock.Dial(ctx, []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"},
		redlock.WithObserver(metrics.Observe))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	metrics.Watch(client)
	prometheus.MustRegister(metrics)
	http.Handle("/metrics", promhttp.Handler())
	go func() { log.Fatal(http.ListenAndServe("localhost:9100", nil)) }()

	if err := redlock.Do(ctx, client.Mutex("nightly-report"), report); err != nil {
		log.Fatal(err)
	}
}

// report stands for the work that one process at a time may do.
func report(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
