// Package redlockotel gives the locks of a redlock.Client to OpenTelemetry: a span for
// every call of Lock, a span for every lease, and metrics of both and of the
// masters.
package redlockotel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/quorumlock/redlock"
)

const scope = "github.com/quorumlock/quorumlock/contrib/redlockotel"

// Telemetry is that of one client. Give Observe to redlock.WithObserver, and pass the
// client to Watch as soon as it exists:
//
//	t, err := redlockotel.New("", nil, nil)
//	client, err := redlock.Dial(ctx, masters, redlock.WithObserver(t.Observe))
//	...
//	stop, err := t.Watch(client)
//
// A call is the span "redlock.lock", a child of the span in the context that was
// given to Lock, with the masters' votes as events. A lease is the span
// "redlock.lease" beside it, with failed renewals, repairs and a validity at risk
// as events. Spans have the names of locks; metrics only their kinds, since there
// may be any number of names. A process with several clients has a Telemetry for each, under
// different names.
type Telemetry struct {
	tracer  trace.Tracer
	meter   metric.Meter
	metrics metrics
	client  []attribute.KeyValue // its name, unless that is empty

	mu     sync.Mutex
	leases map[string]*told // by their values
}

// told is the record of the leases with one value. There are several if one is
// adopted by the client that holds it. When a lease ends while Lock is returning, its
// end may be reported before its acquisition.
//
// Invariant: spans or ends is empty.
type told struct {
	spans []trace.Span    // that have not ended
	ends  []redlock.Event // of leases that are still to be told as acquired
}

// New returns the telemetry of a client, which goes to the given providers; nil stands
// for the global one. The name of the client becomes the attribute redlock.client of
// spans and metrics. It tells the clients of one process apart, such as "orders" and
// "billing"; a process that has only one may leave it empty.
func New(client string, traces trace.TracerProvider, meters metric.MeterProvider) (*Telemetry, error) {
	if traces == nil {
		traces = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	t := &Telemetry{tracer: traces.Tracer(scope), meter: meters.Meter(scope), leases: map[string]*told{}}
	if client != "" {
		t.client = []attribute.KeyValue{attribute.String("redlock.client", client)}
	}
	t.metrics.client = t.client
	if err := t.metrics.create(t.meter); err != nil {
		return nil, fmt.Errorf("redlock: otel: %w", err)
	}
	return t, nil
}

// Observe is for redlock.WithObserver.
func (t *Telemetry) Observe(e redlock.Event) {
	if e.Context == nil {
		e.Context = context.Background()
	}
	t.metrics.observe(e)
	switch e.Kind {
	case redlock.LockAcquired, redlock.LockFailed:
		t.call(e)
	case redlock.LeaseRenewed:
		if e.Err != nil {
			t.happened(e, "renewal failed", attribute.String("error", e.Err.Error()))
		}
	case redlock.LeaseAtRisk:
		t.happened(e, "at risk")
	case redlock.NodeRepaired:
		t.happened(e, "repaired", attribute.String("redlock.node", e.Node))
	case redlock.LeaseLost, redlock.LeaseReleased:
		if span := t.ended(e); span != nil {
			finish(span, e)
		}
	}
}

// call makes a span of a call of Lock that has returned, and begins that of the
// lease.
func (t *Telemetry) call(e redlock.Event) {
	now := time.Now()
	_, span := t.tracer.Start(e.Context, "redlock.lock", trace.WithTimestamp(now.Add(-e.Elapsed)), trace.WithAttributes(t.client...), trace.WithAttributes(
		attribute.String("redlock.lock", e.Lock), attribute.String("redlock.name", e.Name),
		attribute.Int("redlock.attempts", e.Attempts), attribute.Bool("redlock.waited", e.Waited),
	))
	for _, v := range e.Votes {
		span.AddEvent("vote", trace.WithTimestamp(now), trace.WithAttributes(
			attribute.String("redlock.node", v.Node), attribute.String("redlock.vote", v.Vote.String()),
			attribute.Float64("redlock.after", v.After.Seconds())))
	}
	fail(span, e.Err)
	span.End(trace.WithTimestamp(now))
	if e.Err != nil {
		return
	}
	_, lease := t.tracer.Start(e.Context, "redlock.lease", trace.WithTimestamp(now),
		trace.WithLinks(trace.Link{SpanContext: span.SpanContext()}), trace.WithAttributes(t.client...), trace.WithAttributes(
			attribute.String("redlock.lock", e.Lock), attribute.String("redlock.name", e.Name),
			attribute.String("redlock.value", e.Value),
		))
	if end, ended := t.acquired(e.Value, lease); ended {
		finish(lease, end)
	}
}

// acquired keeps the span of a lease until its end, or returns the end if that has been
// told already.
func (t *Telemetry) acquired(value string, span trace.Span) (end redlock.Event, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of(value)
	if len(l.ends) == 0 {
		l.spans = append(l.spans, span)
		return redlock.Event{}, false
	}
	end, l.ends = l.ends[0], l.ends[1:]
	t.forget(value, l)
	return end, true
}

// ended returns the span of a lease that has ended, or keeps its end until the lease is
// told to have been acquired.
func (t *Telemetry) ended(e redlock.Event) trace.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of(e.Value)
	if len(l.spans) == 0 {
		l.ends = append(l.ends, e)
		return nil
	}
	span := l.spans[0]
	l.spans = l.spans[1:]
	t.forget(e.Value, l)
	return span
}

// of returns the record of the leases with a value. The mutex is held.
func (t *Telemetry) of(value string) *told {
	l := t.leases[value]
	if l == nil {
		l = &told{}
		t.leases[value] = l
	}
	return l
}

// forget drops an entry that is empty. The mutex is held.
func (t *Telemetry) forget(value string, l *told) {
	if len(l.spans)+len(l.ends) == 0 {
		delete(t.leases, value)
	}
}

// happened adds an event to the span of the lease that it is about.
func (t *Telemetry) happened(e redlock.Event, what string, more ...attribute.KeyValue) {
	t.mu.Lock()
	var span trace.Span
	if l := t.leases[e.Value]; l != nil && len(l.spans) > 0 {
		span = l.spans[len(l.spans)-1]
	}
	t.mu.Unlock()
	if span != nil {
		span.AddEvent(what, trace.WithAttributes(more...))
	}
}

func finish(span trace.Span, e redlock.Event) {
	span.SetAttributes(attribute.String("redlock.ended", e.Result()))
	fail(span, e.Err)
	span.End()
}

func fail(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
}
