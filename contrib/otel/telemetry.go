// Package otel gives the locks of a redlock.Client to OpenTelemetry: a span for
// every call of Lock, a span for every lease, and metrics of both and of the
// masters.
package otel

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

const scope = "github.com/quorumlock/quorumlock/contrib/otel"

// Telemetry is that of one client. Give Observe to redlock.WithObserver, and tell
// it the client when it is there:
//
//	t, err := otel.New(nil, nil)
//	client, err := redlock.Dial(ctx, masters, redlock.WithObserver(t.Observe))
//	...
//	stop, err := t.Watch(client)
//
// A call is the span "redlock.lock", a child of the span in the context that was
// given to Lock, with the masters' votes as events. A lease is the span
// "redlock.lease" beside it, with failed renewals, repairs and a validity at risk
// as events. Spans have the names of locks; metrics only their kinds, since there
// may be any number of names.
type Telemetry struct {
	tracer  trace.Tracer
	meter   metric.Meter
	metrics metrics

	mu     sync.Mutex
	leases map[string]trace.Span // that are held, by their values
}

// New returns the telemetry of one client, which goes to the given providers; nil
// stands for the global one.
func New(traces trace.TracerProvider, meters metric.MeterProvider) (*Telemetry, error) {
	if traces == nil {
		traces = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	t := &Telemetry{tracer: traces.Tracer(scope), meter: meters.Meter(scope), leases: map[string]trace.Span{}}
	if err := t.metrics.create(t.meter); err != nil {
		return nil, fmt.Errorf("redlock: otel: %w", err)
	}
	return t, nil
}

// Observe is a redlock.Observer.
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
		t.ended(e)
	}
}

// call makes a span of a call of Lock that has returned, and begins that of the
// lease.
func (t *Telemetry) call(e redlock.Event) {
	now := time.Now()
	_, span := t.tracer.Start(e.Context, "redlock.lock", trace.WithTimestamp(now.Add(-e.Elapsed)), trace.WithAttributes(
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
		trace.WithLinks(trace.Link{SpanContext: span.SpanContext()}), trace.WithAttributes(
			attribute.String("redlock.lock", e.Lock), attribute.String("redlock.name", e.Name),
			attribute.String("redlock.value", e.Value),
		))
	t.mu.Lock()
	t.leases[e.Value] = lease
	t.mu.Unlock()
}

// happened adds an event to the span of the lease that it is about.
func (t *Telemetry) happened(e redlock.Event, what string, more ...attribute.KeyValue) {
	t.mu.Lock()
	span := t.leases[e.Value]
	t.mu.Unlock()
	if span != nil {
		span.AddEvent(what, trace.WithAttributes(more...))
	}
}

func (t *Telemetry) ended(e redlock.Event) {
	t.mu.Lock()
	span := t.leases[e.Value]
	delete(t.leases, e.Value)
	t.mu.Unlock()
	if span == nil {
		return
	}
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
