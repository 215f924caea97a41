package redlockprom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// scene is a client whose locks were used in every way, and the address of its
// metrics.
func scene(t *testing.T) (target string) {
	t.Helper()
	m := New("shop")
	client, masters := redlocktest.New(t, redlock.WithObserver(m.Observe), redlock.WithTTL(time.Second), redlock.WithNodeTimeout(200*time.Millisecond))
	m.Watch(client)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)

	ctx := context.Background()
	lease, err := client.Mutex("orders").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Mutex("orders").TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		second, err := client.Mutex("orders").Lock(ctx)
		if err == nil {
			err = second.Unlock(ctx)
		}
		waited <- err
	}()
	for !strings.Contains(get(t, server.URL), `redlock_waiting{client="shop",lock="mutex"} 1`) {
		time.Sleep(time.Millisecond)
	}
	for !strings.Contains(get(t, server.URL), `redlock_renewals_total{client="shop",lock="mutex",result="ok"}`) {
		time.Sleep(time.Millisecond)
	}
	lease.Unlock(ctx)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	masters.Hang(4)
	lost, err := client.Mutex("lost").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	masters.Heal()
	masters.Expire("lost")
	<-lost.Done() // the observer is told a moment later
	for !strings.Contains(get(t, server.URL), `redlock_leases_ended_total{cause="lost",client="shop",lock="mutex"} 1`) {
		time.Sleep(time.Millisecond)
	}
	kept, err := client.Mutex("kept").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Unlock(ctx) })
	for _, kind := range []redlock.EventKind{ // masters in memory say nothing of themselves
		node.EventConnected, node.EventSilent, node.EventAnswering, node.EventDisconnected, node.EventQuarantined, node.EventConnected, node.EventAdmitted,
	} {
		m.Observe(redlock.Event{Kind: kind, Node: "redis-a:6379"})
	}
	for _, kind := range []redlock.EventKind{redlock.LockWaiting, redlock.LockMoved} { // only Groups move
		m.Observe(redlock.Event{Kind: kind, Lock: "mutex", Name: "moved"})
	}
	return server.URL
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEvery_event_is_counted(t *testing.T) {
	page := get(t, scene(t))
	for _, line := range []string{
		`redlock_acquire_seconds_count{client="shop",lock="mutex",result="ok"} 4`,
		`redlock_acquire_seconds_count{client="shop",lock="mutex",result="taken"} 1`,
		`redlock_waiting{client="shop",lock="mutex"} 0`,
		`redlock_leases{client="shop",lock="mutex"} 1`,
		`redlock_held_seconds_count{client="shop",lock="mutex"} 3`,
		`redlock_leases_ended_total{cause="released",client="shop",lock="mutex"} 2`,
		`redlock_leases_ended_total{cause="lost",client="shop",lock="mutex"} 1`,
		`redlock_node_up{client="shop",node="`,
		`redlock_node_votes_total{client="shop",node="master-4",vote="pending"} `,
		`redlock_node_votes_total{client="shop",node="master-0",vote="refused"} `,
		`redlock_node_answer_seconds_count{client="shop",node="master-0"} `,
		`redlock_node_latency_seconds{client="shop",node="master-0"} `,
		`redlock_node_events_total{client="shop",event="connected",node="redis-a:6379"} 2`,
		`redlock_node_events_total{client="shop",event="disconnected",node="redis-a:6379"} 1`,
		`redlock_node_events_total{client="shop",event="silent",node="redis-a:6379"} 1`,
		`redlock_node_events_total{client="shop",event="answering",node="redis-a:6379"} 1`,
		`redlock_node_events_total{client="shop",event="quarantined",node="redis-a:6379"} 1`,
		`redlock_node_events_total{client="shop",event="admitted",node="redis-a:6379"} 1`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("not there: %s", line)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// The increase from nothing to 1 is none for Prometheus.
func TestLosses_are_counted_from_zero(t *testing.T) {
	m := New("")
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	m.Observe(redlock.Event{Kind: redlock.LockAcquired, Lock: "mutex"})
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, line := range []string{
		`redlock_leases_ended_total{cause="lost",client="",lock="mutex"} 0`,
		`redlock_leases_ended_total{cause="expired",client="",lock="mutex"} 0`,
		`redlock_leases_at_risk_total{client="",lock="mutex"} 0`,
		`redlock_acquire_seconds_count{client="",lock="mutex",result="no_quorum"} 0`,
	} {
		if !strings.Contains(page.Body.String(), line) {
			t.Errorf("not there: %s", line)
		}
	}
}

// Each client of a process has metrics of its own, also where several have the same
// masters.
func TestSeveral_clients_in_one_process(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, name := range []string{"orders", "billing", ""} {
		m := New(name)
		if err := registry.Register(m); err != nil {
			t.Fatal(err)
		}
		client, _ := redlocktest.New(t, redlock.WithObserver(m.Observe))
		m.Watch(client)
		lease, err := client.Mutex("name").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lease.Unlock(context.Background()) })
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	page := get(t, server.URL)
	for _, line := range []string{
		`redlock_leases{client="orders",lock="mutex"} 1`,
		`redlock_leases{client="billing",lock="mutex"} 1`,
		`redlock_leases{client="",lock="mutex"} 1`,
		`redlock_node_up{client="orders",node="master-0"} `,
		`redlock_node_up{client="billing",node="master-0"} `,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("not there: %s\n%s", line, page)
		}
	}
}

func TestAlerts_fire_when_they_should(t *testing.T) {
	if out, err := exec.Command("promtool", "test", "rules", "alerts_test.yml").CombinedOutput(); err != nil {
		t.Errorf("%v: see make contrib\n%s", err, out)
	}
}

// Every metric of a rule exists: a rule with a name that is spelt wrong never fires.
func TestAlerts_name_metrics_that_exist(t *testing.T) {
	page := get(t, scene(t))
	rules, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\bredlock_\w+`).FindAllString(string(rules), -1)
	if len(names) < 9 {
		t.Fatalf("found only %d metrics", len(names))
	}
	for _, name := range names {
		if !strings.Contains(page, "\n"+name+"{") {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// A real Prometheus scrapes the metrics, and has an answer to every query of the
// dashboard.
func TestPrometheus_answers_every_query_of_the_dashboard(t *testing.T) {
	target := scene(t)
	server := startPrometheus(t, target)
	for title, query := range queries(t) {
		answer := struct {
			Status string
			Data   struct{ Result []any }
		}{}
		deadline := time.Now().Add(30 * time.Second)
		for answer.Status != "success" || len(answer.Data.Result) == 0 {
			if time.Now().After(deadline) {
				t.Errorf("%s: %s: no answer: %+v", title, query, answer)
				break
			}
			if err := json.Unmarshal([]byte(get(t, server+"/api/v1/query?query="+url.QueryEscape(query))), &answer); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// queries returns those of the dashboard.
func queries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			found[p.Title+" "+q.RefID] = q.Expr
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %d queries", len(found))
	}
	return found
}

func startPrometheus(t *testing.T, target string) (server string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("scrape_configs:\n- job_name: redlock\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  metrics_path: /\n  static_configs:\n  - targets: [%q]\n", strings.TrimPrefix(target, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command("prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", addr)
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: see make contrib", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + addr + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return "http://" + addr
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("prometheus does not start")
		}
	}
}
