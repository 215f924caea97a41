// Package redlockprom shows the locks of a redlock.Client and its masters to
// Prometheus. Beside it are a Grafana dashboard, dashboard.json, and alert rules,
// alerts.yml.
package redlockprom

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// Metrics is a prometheus.Collector of one client. Give Observe to
// redlock.WithObserver, register the Metrics, and pass the client to Watch as soon as
// it exists:
//
//	m := redlockprom.New("")
//	prometheus.MustRegister(m)
//	client, err := redlock.Dial(ctx, masters, redlock.WithObserver(m.Observe))
//	...
//	m.Watch(client)
//
// A process with several clients has Metrics for each, under different names.
//
// The label lock is the kind of a lock and not its name: there may be any number of
// names.
type Metrics struct {
	waited, held                     *prometheus.HistogramVec
	calls, renewals, ended, repaired *prometheus.CounterVec
	answered                         *prometheus.HistogramVec
	votes, nodeEvents                *prometheus.CounterVec
	waiting, leases                  *prometheus.GaugeVec
	atRisk                           *prometheus.CounterVec
	masters                          []master
	kinds                            sync.Map // of locks that were told of
	client                           atomic.Pointer[redlock.Client]
}

// seconds goes from a fraction of a round trip to an hour.
var seconds = prometheus.ExponentialBuckets(0.00025, 4, 13)

// ofNodes goes from a fraction of a round trip to what no node timeout waits for.
var ofNodes = prometheus.ExponentialBuckets(0.0001, 2, 16)

// New returns the metrics of a client. Its name becomes the label client of all of
// them. It tells the clients of one process apart, such as "orders" and "billing"; a
// process that has only one may leave it empty. Metrics of the same name cannot be
// registered twice.
func New(client string) *Metrics {
	whose := prometheus.Labels{"client": client}
	name := func(what, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "redlock", Name: what, Help: help, ConstLabels: whose}
	}
	counter := func(what, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(name(what, help)), labels)
	}
	gauge := func(what, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts(name(what, help)), []string{"lock"})
	}
	histogram := func(buckets []float64, what, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "redlock", Name: what, Help: help, ConstLabels: whose, Buckets: buckets}, labels)
	}
	return &Metrics{
		waited:     histogram(seconds, "acquire_seconds", "From the call of Lock or TryLock until it returned.", "lock", "result"),
		held:       histogram(seconds, "held_seconds", "How long leases were held.", "lock"),
		calls:      counter("acquire_attempts_total", "How often masters were asked for a lock, by what the call came to.", "lock", "result"),
		renewals:   counter("renewals_total", "Renewals of leases, by what they came to.", "lock", "result"),
		ended:      counter("leases_ended_total", "Leases that ended, by cause: released, lost, expired.", "lock", "cause"),
		repaired:   counter("repairs_total", "Masters that had lost a key and were given it back.", "node"),
		answered:   histogram(ofNodes, "node_answer_seconds", "How long a master took to answer the question that decided a call.", "node"),
		votes:      counter("node_votes_total", "What masters had said when a call was decided: granted, refused, failed; pending: nothing yet.", "node", "vote"),
		nodeEvents: counter("node_events_total", "What happened to masters: connected, disconnected, silent, answering, quarantined, admitted.", "node", "event"),
		atRisk:     counter("leases_at_risk_total", "Leases that were not renewed for half of their validity.", "lock"),
		waiting:    gauge("waiting", "Callers that wait for a lock."),
		leases:     gauge("leases", "Leases that are held."),
		masters:    masters(whose),
	}
}

// Watch has the metrics show the client's masters, too.
func (m *Metrics) Watch(c *redlock.Client) { m.client.Store(c) }

// Observe is for redlock.WithObserver.
func (m *Metrics) Observe(e redlock.Event) {
	switch e.Kind {
	case redlock.LockWaiting, redlock.LockAcquired, redlock.LockFailed:
		m.zero(e.Lock)
	}
	switch e.Kind {
	case redlock.LockWaiting:
		m.waiting.WithLabelValues(e.Lock).Inc()
	case redlock.LockMoved:
		m.waiting.WithLabelValues(e.Lock).Dec()
	case redlock.LockAcquired, redlock.LockFailed:
		result := e.Result()
		m.waited.WithLabelValues(e.Lock, result).Observe(e.Elapsed.Seconds())
		m.calls.WithLabelValues(e.Lock, result).Add(float64(e.Attempts))
		m.count(e.Votes)
		if e.Waited {
			m.waiting.WithLabelValues(e.Lock).Dec()
		}
		if e.Err == nil {
			m.leases.WithLabelValues(e.Lock).Inc()
		}
	case redlock.LeaseRenewed:
		m.renewals.WithLabelValues(e.Lock, e.Result()).Inc()
	case redlock.LeaseAtRisk:
		m.atRisk.WithLabelValues(e.Lock).Inc()
	case redlock.NodeRepaired:
		m.repaired.WithLabelValues(e.Node).Inc()
	case node.EventConnected, node.EventDisconnected, node.EventSilent, node.EventAnswering, node.EventQuarantined, node.EventAdmitted:
		m.nodeEvents.WithLabelValues(e.Node, string(e.Kind)).Inc()
	case redlock.LeaseLost, redlock.LeaseReleased:
		m.leases.WithLabelValues(e.Lock).Dec()
		m.held.WithLabelValues(e.Lock).Observe(e.Elapsed.Seconds())
		m.ended.WithLabelValues(e.Lock, e.Result()).Inc()
	}
}

// zero has what alerts look at begin with 0 for a kind of lock: the increase from
// nothing to 1 is none.
func (m *Metrics) zero(lock string) {
	if _, known := m.kinds.LoadOrStore(lock, true); known {
		return
	}
	m.atRisk.WithLabelValues(lock)
	for _, cause := range []string{"released", "lost", "expired"} {
		m.ended.WithLabelValues(lock, cause)
	}
	for _, result := range []string{"ok", "no_quorum"} {
		m.waited.WithLabelValues(lock, result)
	}
}

// count adds the votes that decided a call. Pending votes have no latency:
// a master that is slower than a majority of the others is seen by their share.
func (m *Metrics) count(votes []redlock.Vote) {
	for _, v := range votes {
		m.votes.WithLabelValues(v.Node, v.Vote.String()).Inc()
		if v.After > 0 {
			m.answered.WithLabelValues(v.Node).Observe(v.After.Seconds())
		}
	}
}

// Describe is that of a prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
	for _, d := range m.masters {
		ch <- d.desc
	}
}

// Collect is that of a prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
	client := m.client.Load()
	if client == nil {
		return
	}
	for _, s := range client.Nodes() {
		for _, d := range m.masters {
			ch <- prometheus.MustNewConstMetric(d.desc, d.kind, d.value(s), s.Addr)
		}
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.waited, m.held, m.calls, m.renewals, m.ended, m.repaired, m.answered, m.votes, m.nodeEvents, m.atRisk, m.waiting, m.leases}
}

// master is a metric of each master.
type master struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(node.Status) float64
}

func masters(whose prometheus.Labels) []master {
	of := func(what, help string) *prometheus.Desc {
		return prometheus.NewDesc("redlock_node_"+what, help, []string{"node"}, whose)
	}
	return []master{
		{of("up", "Whether the master is connected and answers."), prometheus.GaugeValue, func(s node.Status) float64 {
			return one(s.State == node.StateConnected && !s.Silent)
		}},
		{of("quarantine_seconds", "For how long the master must not grant yet."), prometheus.GaugeValue, func(s node.Status) float64 { return s.Quarantine.Seconds() }},
		{of("clock_offset_seconds", "The master's clock minus ours."), prometheus.GaugeValue, func(s node.Status) float64 { return s.ClockOffset.Seconds() }},
		{of("round_trip_seconds", "What a PING took when the master was connected."), prometheus.GaugeValue, func(s node.Status) float64 { return s.RoundTrip.Seconds() }},
		{of("latency_seconds", "What the last heartbeat took."), prometheus.GaugeValue, func(s node.Status) float64 { return s.Latency.Seconds() }},
		{of("in_flight", "Commands without an answer."), prometheus.GaugeValue, func(s node.Status) float64 { return float64(s.InFlight) }},
		{of("undelivered_releases", "Releases that are still owed to the master."), prometheus.GaugeValue, func(s node.Status) float64 { return float64(s.Undelivered) }},
		{of("commands_total", "Commands given to the master."), prometheus.CounterValue, func(s node.Status) float64 { return float64(s.Commands) }},
		{of("reconnects_total", "Connections to the master after the first."), prometheus.CounterValue, func(s node.Status) float64 { return float64(s.Reconnects) }},
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
