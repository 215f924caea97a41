package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestBlocking_finds_the_circles(t *testing.T) {
	waits := func(clients ...string) (queue []redlock.Waiter) {
		for _, c := range clients {
			queue = append(queue, redlock.Waiter{Client: c})
		}
		return queue
	}
	alone := func(client string, queue []redlock.Waiter) redlock.Holder {
		return redlock.Holder{Held: true, Client: client, Queue: queue}
	}
	for _, c := range []struct {
		name  string
		held  map[string]redlock.Holder
		edges string // waiter>lock>holders, with the number of the circle
		want  [][]string
	}{
		{"nobody waits", map[string]redlock.Holder{"x": alone("a", nil)}, "", [][]string{}},
		{"a line", map[string]redlock.Holder{"x": alone("a", waits("b", "c")), "y": alone("b", waits("c"))}, "b>x>[a]0 c>x>[a]0 c>y>[b]0", [][]string{}},
		{"two wait for each other", map[string]redlock.Holder{"x": alone("a", waits("b", "c")), "y": alone("b", waits("a"))}, "b>x>[a]1 c>x>[a]0 a>y>[b]1", [][]string{{"a", "b"}}},
		{"three in a circle", map[string]redlock.Holder{"x": alone("a", waits("b")), "y": alone("b", waits("c")), "z": alone("c", waits("a"))},
			"b>x>[a]1 c>y>[b]1 a>z>[c]1", [][]string{{"a", "b", "c"}}},
		{"two circles", map[string]redlock.Holder{"w": alone("a", waits("b")), "x": alone("b", waits("a")), "y": alone("c", waits("d")), "z": alone("d", waits("c"))},
			"b>w>[a]1 a>x>[b]1 d>y>[c]2 c>z>[d]2", [][]string{{"a", "b"}, {"c", "d"}}},
		{"goroutines of one client", map[string]redlock.Holder{"x": alone("a", waits("a"))}, "a>x>[a]0", [][]string{}},
		{"a reader", map[string]redlock.Holder{"x": {Held: true, Shares: []redlock.Share{{Client: "b"}, {Client: "a"}, {Client: "b"}}, Queue: waits("c")}, "y": alone("c", waits("b"))},
			"c>x>[a b]1 b>y>[c]1", [][]string{{"b", "c"}}},
		{"another library", map[string]redlock.Holder{"x": alone("", waits("a"))}, "a>x>[]0", [][]string{}},
		{"a lock that is kept", map[string]redlock.Holder{"x": {Held: true, Kept: true, Client: "a", Queue: waits("b")}, "y": alone("b", waits("a"))}, "b>x>[]0 a>y>[b]0", [][]string{}},
	} {
		b := blockingOf(c.held)
		var edges []string
		for _, w := range b.Waits {
			edges = append(edges, fmt.Sprintf("%s>%s>%v%d", w.Client, w.Lock, w.Holders, w.Circle))
		}
		if got := strings.Join(edges, " "); got != c.edges || !reflect.DeepEqual(b.Circles, c.want) {
			t.Errorf("%s: %s, circles %v; want %s, %v", c.name, got, b.Circles, c.edges, c.want)
		}
	}
}

// Names are of clients, which may write anything into them.
func TestBlocking_is_shown_without_what_a_terminal_obeys(t *testing.T) {
	const odd = "\x1b[2J"
	readers := []redlock.Share{{Client: "c" + odd}, {Client: "d"}, {Client: "e"}}
	b := blockingOf(map[string]redlock.Holder{
		"x" + odd:    {Held: true, Client: "b" + odd, Queue: []redlock.Waiter{{Client: "a" + odd}}},
		"y":          {Held: true, Client: "a" + odd, Queue: []redlock.Waiter{{Client: "b" + odd, Metadata: odd}}},
		"z":          {Held: true, Shares: readers, Queue: []redlock.Waiter{{Client: "f"}}},
		"of redsync": {Held: true, Queue: []redlock.Waiter{{Client: "g"}}},
	})
	b.Cut = true
	var out strings.Builder

	if err := b.show(&out); err != nil {
		t.Fatal(err)
	}

	if strings.Contains(out.String(), odd) {
		t.Errorf("%q obeys", out.String())
	}
	for _, want := range []string{"another library", " and 2 more", "circle 1: ", "some locks may be missing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s does not say %q", out.String(), want)
		}
	}
}

// It is shown whatever happens to a minority of the masters.
func TestReal_status_shows_who_blocks_whom(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*redistest.Server){
		"none": func(*redistest.Server) {}, "hung": (*redistest.Server).Stop,
		"killed": (*redistest.Server).Kill, "restarted empty": (*redistest.Server).RestartEmpty,
	} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d of 5", name, n), func(t *testing.T) {
				t.Parallel()
				showsWhoBlocksWhom(t, func(masters []*redistest.Server) {
					for _, s := range masters[:n] {
						fault(s)
					}
				})
			})
		}
	}
}

func showsWhoBlocksWhom(t *testing.T, happens func([]*redistest.Server)) {
	masters := redistest.StartN(t, 5)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := func(id string) *redlock.Client {
		c, err := redlock.Dial(ctx, redistest.URLs(masters), redlock.WithRestartGuard(0), redlock.WithClientID(id), redlock.WithTTL(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	one, two := client("one"), client("two")
	for name, c := range map[string]*redlock.Client{"orders": one, "stock": two} {
		if _, err := c.Mutex(name).Lock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	status := func(args ...string) string {
		c := clitest.OnMasters(t, masters, append([]string{"status", "--blocked"}, args...)...)
		c.Begin().WantExit(0)
		return c.Out.String()
	}
	if said := status(); said != "nobody waits for a lock that is held\n" {
		t.Errorf("nobody waits: %s", said)
	}
	go one.Mutex("stock", redlock.Metadata("nightly")).Lock(ctx)
	go two.Mutex("orders").Lock(ctx)

	happens(masters)
	var got blocking
	for deadline := time.Now().Add(time.Minute); len(got.Waits) < 2 && time.Now().Before(deadline); {
		got = blocking{}
		if err := json.Unmarshal([]byte(status("--json")), &got); err != nil {
			t.Fatal(err)
		}
	}
	want := blocking{Complete: true, Circles: [][]string{{"one", "two"}}, Waits: []wait{
		{Client: "two", Lock: "orders", Position: 1, Holders: []string{"one"}, Circle: 1},
		{Client: "one", Metadata: "nightly", Lock: "stock", Position: 1, Holders: []string{"two"}, Circle: 1},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	said := strings.Join(strings.Fields(status()), " ")
	for _, want := range []string{"two orders one 1", "one (nightly) stock two 1", "circle 1: two waits for orders, held by one; one waits for stock, held by two"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}
