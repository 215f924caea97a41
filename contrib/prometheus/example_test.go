package prometheus_test

import (
	"context"
	"log"
	"net/http"

	clientgolang "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorumlock/quorumlock/contrib/prometheus"
	"github.com/quorumlock/quorumlock/redlock"
)

func Example() {
	m := prometheus.New()
	client, err := redlock.Dial(context.Background(), []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"},
		redlock.WithObserver(m.Observe))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	m.Watch(client)
	clientgolang.MustRegister(m)
	http.Handle("/metrics", promhttp.Handler())
	log.Fatal(http.ListenAndServe("localhost:9100", nil))
}
