package redlockotel_test

import (
	"context"
	"log"

	"github.com/quorumlock/quorumlock/contrib/redlockotel"
	"github.com/quorumlock/quorumlock/redlock"
)

func Example() {
	ctx := context.Background()
	t, err := redlockotel.New("", nil, nil) // the global providers
	if err != nil {
		log.Fatal(err)
	}
	client, err := redlock.Dial(ctx, []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"}, redlock.WithObserver(t.Observe))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	stop, err := t.Watch(client)
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
}
