package redlockotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// metrics count the events.
type metrics struct {
	acquire, held, answer                      metric.Float64Histogram
	attempts, renewals, ended, repairs, atRisk metric.Int64Counter
	votes, nodeEvents                          metric.Int64Counter
	waiting, leases                            metric.Int64UpDownCounter
	client                                     []attribute.KeyValue
}

// seconds goes from a fraction of a round trip to an hour, and ofNodes to what no
// node timeout waits for.
var (
	seconds = []float64{0.00025, 0.001, 0.004, 0.016, 0.064, 0.256, 1, 4, 16, 64, 256, 1024, 4096}
	ofNodes = []float64{0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048, 0.4096, 0.8192, 1.6384, 3.2768}
)

func (m *metrics) create(meter metric.Meter) error {
	var failed error
	histogram := func(buckets []float64, name, help string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithDescription(help), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...))
		failed = errors.Join(failed, err)
		return h
	}
	counter := func(name, help string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithDescription(help))
		failed = errors.Join(failed, err)
		return c
	}
	level := func(name, help string) metric.Int64UpDownCounter {
		c, err := meter.Int64UpDownCounter(name, metric.WithDescription(help))
		failed = errors.Join(failed, err)
		return c
	}
	*m = metrics{
		client:     m.client,
		acquire:    histogram(seconds, "redlock.acquire.duration", "From the call of Lock or TryLock until it returned."),
		held:       histogram(seconds, "redlock.held.duration", "How long leases were held."),
		attempts:   counter("redlock.acquire.attempts", "How often masters were asked for a lock, by what the call came to."),
		renewals:   counter("redlock.renewals", "Renewals of leases, by what they came to."),
		ended:      counter("redlock.leases.ended", "Leases that ended, by cause: released, lost, expired."),
		repairs:    counter("redlock.repairs", "Masters that had lost a key and were given it back."),
		answer:     histogram(ofNodes, "redlock.node.answer.duration", "How long a master took to answer the question that decided a call."),
		votes:      counter("redlock.node.votes", "What masters had said when a call was decided: granted, refused, failed; pending: nothing yet."),
		nodeEvents: counter("redlock.node.events", "What happened to masters: connected, disconnected, silent, answering, quarantined, admitted."),
		atRisk:     counter("redlock.leases.at_risk", "Leases that were not renewed for half of their validity."),
		waiting:    level("redlock.waiting", "Callers that wait for a lock."),
		leases:     level("redlock.leases", "Leases that are held."),
	}
	return failed
}

func (m *metrics) observe(e redlock.Event) {
	ctx := e.Context
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return m.with(append(more, attribute.String("redlock.lock", e.Lock))...)
	}
	switch e.Kind {
	case redlock.LockWaiting:
		m.waiting.Add(ctx, 1, with())
	case redlock.LockMoved:
		m.waiting.Add(ctx, -1, with())
	case redlock.LockAcquired, redlock.LockFailed:
		result := attribute.String("redlock.result", e.Result())
		m.acquire.Record(ctx, e.Elapsed.Seconds(), with(result))
		m.attempts.Add(ctx, int64(e.Attempts), with(result))
		m.count(ctx, e.Votes)
		if e.Waited {
			m.waiting.Add(ctx, -1, with())
		}
		if e.Err == nil {
			m.leases.Add(ctx, 1, with())
		}
	case redlock.LeaseRenewed:
		m.renewals.Add(ctx, 1, with(attribute.String("redlock.result", e.Result())))
	case redlock.LeaseAtRisk:
		m.atRisk.Add(ctx, 1, with())
	case redlock.NodeRepaired:
		m.repairs.Add(ctx, 1, m.with(attribute.String("redlock.node", e.Node)))
	case node.EventConnected, node.EventDisconnected, node.EventSilent, node.EventAnswering, node.EventQuarantined, node.EventAdmitted:
		m.nodeEvents.Add(ctx, 1, m.with(
			attribute.String("redlock.node", e.Node), attribute.String("redlock.event", string(e.Kind))))
	case redlock.LeaseLost, redlock.LeaseReleased:
		m.leases.Add(ctx, -1, with())
		m.held.Record(ctx, e.Elapsed.Seconds(), with())
		m.ended.Add(ctx, 1, with(attribute.String("redlock.cause", e.Result())))
	}
}

// with returns attributes, and which client they are of.
func (m *metrics) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(more, m.client...)...)
}

// count adds the votes that decided a call. Pending votes have no latency:
// a master that is slower than a majority of the others is seen by their share.
func (m *metrics) count(ctx context.Context, votes []redlock.Vote) {
	for _, v := range votes {
		name := attribute.String("redlock.node", v.Node)
		m.votes.Add(ctx, 1, m.with(name, attribute.String("redlock.vote", v.Vote.String())))
		if v.After > 0 {
			m.answer.Record(ctx, v.After.Seconds(), m.with(name))
		}
	}
}

// Watch has the metrics show the client's masters, too, until stop is called,
// which belongs before the client's Close.
func (t *Telemetry) Watch(c *redlock.Client) (stop func() error, err error) {
	var all []metric.Observable
	values := map[metric.Float64Observable]func(node.Status) float64{}
	for _, of := range masters {
		gauge, err := t.meter.Float64ObservableGauge("redlock.node."+of.name, metric.WithDescription(of.help), metric.WithUnit(of.unit))
		if err != nil {
			return nil, fmt.Errorf("redlock: otel: %w", err)
		}
		all, values[gauge] = append(all, gauge), of.value
	}
	r, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range c.Nodes() {
			for gauge, value := range values {
				o.ObserveFloat64(gauge, value(s), t.metrics.with(attribute.String("redlock.node", s.Addr)))
			}
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("redlock: otel: %w", err)
	}
	return r.Unregister, nil
}

// masters are the metrics of each master.
var masters = []struct {
	name, help, unit string
	value            func(node.Status) float64
}{
	{"up", "1 if the master is connected and answers.", "", func(s node.Status) float64 {
		if s.State == node.StateConnected && !s.Silent {
			return 1
		}
		return 0
	}},
	{"quarantine", "For how long the master must not grant yet.", "s", func(s node.Status) float64 { return s.Quarantine.Seconds() }},
	{"clock_offset", "The master's clock minus ours.", "s", func(s node.Status) float64 { return s.ClockOffset.Seconds() }},
	{"round_trip", "What a PING took when the master was connected.", "s", func(s node.Status) float64 { return s.RoundTrip.Seconds() }},
	{"latency", "What the last heartbeat took.", "s", func(s node.Status) float64 { return s.Latency.Seconds() }},
	{"in_flight", "Commands without an answer.", "", func(s node.Status) float64 { return float64(s.InFlight) }},
	{"undelivered_releases", "Releases that are still owed to the master.", "", func(s node.Status) float64 { return float64(s.Undelivered) }},
}
