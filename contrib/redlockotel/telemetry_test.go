package redlockotel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorumlock/quorumlock/contrib/redlockotel"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// fixture is a client of masters in memory whose telemetry is recorded.
type fixture struct {
	observe func(redlock.Event)
	client  *redlock.Client
	masters *redlocktest.Masters
	spans   *tracetest.SpanRecorder
	reader  *metric.ManualReader
	traces  *trace.TracerProvider
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	f.traces = trace.NewTracerProvider(trace.WithSpanProcessor(f.spans))
	telemetry, err := redlockotel.New("", f.traces, metric.NewMeterProvider(metric.WithReader(f.reader)))
	if err != nil {
		t.Fatal(err)
	}
	f.observe = telemetry.Observe
	f.client, f.masters = redlocktest.New(t, redlock.WithObserver(telemetry.Observe), redlock.WithTTL(3*time.Second))
	stop, err := telemetry.Watch(f.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// ended returns the span of that name, when it has ended.
func (f *fixture) ended(t *testing.T, name string) trace.ReadOnlySpan {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		all := f.spans.Ended()
		if i := slices.IndexFunc(all, func(s trace.ReadOnlySpan) bool { return s.Name() == name }); i >= 0 {
			return all[i]
		}
	}
	t.Fatalf("no span %q has ended", name)
	return nil
}

func has(s trace.ReadOnlySpan, want attribute.KeyValue) bool {
	return slices.Contains(s.Attributes(), want)
}

func TestA_call_and_its_lease_are_spans_of_the_caller(t *testing.T) {
	f := start(t)
	ctx, caller := f.traces.Tracer("test").Start(context.Background(), "job")

	lease, err := f.client.Mutex("orders").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	call, held := f.ended(t, "redlock.lock"), f.ended(t, "redlock.lease")
	for _, s := range []trace.ReadOnlySpan{call, held} {
		if s.Parent().SpanID() != caller.SpanContext().SpanID() {
			t.Errorf("%s is no child of the caller's span", s.Name())
		}
		if !has(s, attribute.String("redlock.name", "orders")) || !has(s, attribute.String("redlock.lock", "mutex")) {
			t.Errorf("%s does not say which lock: %v", s.Name(), s.Attributes())
		}
		if s.Status().Code == codes.Error {
			t.Errorf("%s: %v", s.Name(), s.Status())
		}
	}
	granted := 0
	for _, e := range call.Events() {
		if e.Name == "vote" && slices.Contains(e.Attributes, attribute.String("redlock.vote", "granted")) {
			granted++
		}
	}
	for _, e := range call.Events() {
		if slices.Contains(e.Attributes, attribute.String("redlock.vote", "granted")) && !slices.ContainsFunc(e.Attributes, func(a attribute.KeyValue) bool {
			return a.Key == "redlock.after" && a.Value.AsFloat64() > 0
		}) {
			t.Errorf("a vote without the time that it took: %v", e.Attributes)
		}
	}
	if granted < 3 {
		t.Errorf("%d masters granted, by the events %v", granted, call.Events())
	}
	if !has(held, attribute.String("redlock.value", lease.Value())) || !has(held, attribute.String("redlock.ended", "released")) {
		t.Errorf("the lease is told as %v", held.Attributes())
	}
	if held.StartTime().Before(call.StartTime()) {
		t.Error("the lease began before the call")
	}
}

func TestA_call_that_fails_says_why(t *testing.T) {
	f := start(t)
	held, err := f.client.Mutex("orders").Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	f.spans.Reset()

	if _, err := f.client.Mutex("orders").TryLock(context.Background()); !errors.Is(err, redlock.ErrTaken) {
		t.Fatal(err)
	}

	if s := f.ended(t, "redlock.lock"); s.Status().Code != codes.Error || len(s.Events()) < 4 {
		t.Errorf("status %v, events %v; want the error and at least three votes", s.Status(), s.Events())
	}
	if err := held.Unlock(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestA_lease_that_is_lost_is_a_span_with_an_error(t *testing.T) {
	f := start(t)
	lease, err := f.client.Mutex("orders").Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}

	f.masters.Expire("orders")

	<-lease.Done()
	if s := f.ended(t, "redlock.lease"); s.Status().Code != codes.Error || !has(s, attribute.String("redlock.ended", "lost")) {
		t.Errorf("status %v, attributes %v", s.Status(), s.Attributes())
	}
}

// A lease may end while Lock is returning: the observer is told of its end first.
func TestA_lease_that_ends_before_it_is_told_to_be_acquired_leaves_nothing_behind(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	telemetry, err := redlockotel.New("orders", trace.NewTracerProvider(trace.WithSpanProcessor(spans)), nil)
	if err != nil {
		t.Fatal(err)
	}
	acquired := redlock.Event{Kind: redlock.LockAcquired, Lock: "mutex", Name: "name", Value: "value"}
	lost := redlock.Event{Kind: redlock.LeaseLost, Lock: "mutex", Name: "name", Value: "value", Err: redlock.ErrLost}

	telemetry.Observe(lost)
	telemetry.Observe(acquired)

	i := slices.IndexFunc(spans.Ended(), func(s trace.ReadOnlySpan) bool { return s.Name() == "redlock.lease" })
	if i < 0 || len(spans.Started()) != len(spans.Ended()) {
		t.Fatalf("%d spans have begun, %d have ended, the lease's is number %d of these", len(spans.Started()), len(spans.Ended()), i)
	}
	if s := spans.Ended()[i]; s.Status().Code != codes.Error || !has(s, attribute.String("redlock.ended", "lost")) || !has(s, attribute.String("redlock.client", "orders")) {
		t.Errorf("status %v, attributes %v", s.Status(), s.Attributes())
	}
	// The next lease is not taken for one that has ended.
	telemetry.Observe(acquired)
	if len(spans.Started()) != len(spans.Ended())+1 {
		t.Errorf("%d spans have begun, %d have ended, want one less", len(spans.Started()), len(spans.Ended()))
	}
	telemetry.Observe(lost)
	if len(spans.Started()) != len(spans.Ended()) || telemetry.Held() != 0 {
		t.Errorf("%d spans have begun, %d have ended, %d leases are kept", len(spans.Started()), len(spans.Ended()), telemetry.Held())
	}
}

func TestSeveral_clients_are_told_apart(t *testing.T) {
	reader := metric.NewManualReader()
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	for _, name := range []string{"orders", "billing"} {
		telemetry, err := redlockotel.New(name, nil, meters)
		if err != nil {
			t.Fatal(err)
		}
		client, _ := redlocktest.New(t, redlock.WithObserver(telemetry.Observe))
		stop, err := telemetry.Watch(client)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop() })
		lease, err := client.Mutex("name").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lease.Unlock(context.Background()) })
	}
	f := &fixture{reader: reader}
	if got := f.sum(t, "redlock.node.up"); got != 10 {
		t.Errorf("redlock.node.up has %v points, want one for each of five masters of two clients", got)
	}
	if got := f.sum(t, "redlock.leases"); got != 2 {
		t.Errorf("redlock.leases is %v, want 2", got)
	}
}

func TestMetrics_count_every_event(t *testing.T) {
	f := start(t)
	ctx := context.Background()
	lease, err := f.client.Mutex("orders").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.client.Mutex("orders").TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
		t.Fatal(err)
	}
	second, err := f.client.Mutex("others").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	for _, kind := range []redlock.EventKind{ // masters in memory say nothing of themselves
		node.EventConnected, node.EventSilent, node.EventAnswering, node.EventDisconnected, node.EventQuarantined, node.EventAdmitted,
	} {
		f.observe(redlock.Event{Kind: kind, Node: "redis-a:6379"})
	}

	for _, kind := range []redlock.EventKind{redlock.LockWaiting, redlock.LockWaiting, redlock.LockMoved} { // only Groups move
		f.observe(redlock.Event{Kind: kind, Lock: "mutex", Name: "moved"})
	}

	for name, want := range map[string]float64{
		"redlock.waiting":              1,
		"redlock.node.events":          6,
		"redlock.node.votes":           15,
		"redlock.node.answer.duration": 15,
		"redlock.node.latency":         5,
		"redlock.acquire.duration":     3, "redlock.acquire.attempts": 3, "redlock.held.duration": 1,
		"redlock.leases.ended": 1, "redlock.leases": 1, "redlock.node.up": 5,
	} {
		if got := f.sum(t, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// sum adds up all points of a counter. Of a histogram it counts what was recorded,
// and of a gauge the points: masters in memory say nothing of themselves.
func (f *fixture) sum(t *testing.T, name string) (sum float64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := f.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					sum += float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				sum += float64(len(data.DataPoints))
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					sum += float64(p.Count)
				}
			}
		}
	}
	return sum
}
