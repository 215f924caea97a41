package bench

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/monitor"
)

// Reach is how exactly a distance was kept: the round trip of a PING while
// nothing else goes on, in microseconds.
type Reach struct {
	Distance string  `json:"distance"`
	Group    string  `json:"group"`
	Masters  int     `json:"masters"`
	Asked    float64 `json:"asked_us"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
}

// pings is how many are sent to each master to measure its distance, and again
// on the way to it.
const (
	pings      = 150
	approaches = 3
)

// measure finds the delays with which a PING takes as long as was asked for: the
// machine adds something of its own to a round trip. It then measures what came
// of it.
func (m *Masters) measure(d *Distance) ([]Reach, error) {
	asked := d.asked(len(m.all))
	d.delays = make([]time.Duration, len(asked))
	for i := range asked {
		d.delays[i] = asked[i] / 2
	}
	for range approaches {
		took, err := m.ping(d, pings/approaches)
		if err != nil {
			return nil, err
		}
		for i, h := range took {
			d.delays[i] = max(0, d.delays[i]-(time.Duration(h.ValueAtQuantile(50))-asked[i])/2)
		}
	}
	took, err := m.ping(d, pings)
	if err != nil {
		return nil, err
	}
	d.urls, d.rtt, d.pid = m.lines.urls, nil, m.lines.pid()
	for _, h := range took {
		d.rtt = append(d.rtt, time.Duration(h.ValueAtQuantile(50)))
	}
	return d.reach(took), nil
}

// reach merges the masters of each group.
func (d *Distance) reach(took []*hdrhistogram.Histogram) (all []Reach) {
	for _, g := range d.Groups {
		n := g.Masters
		if n == 0 {
			n = len(took)
		}
		sum := newHistogram()
		for _, h := range took[:n] {
			sum.Merge(h)
		}
		took = took[n:]
		all = append(all, Reach{d.Name, g.Name, n, micros(g.RTT),
			micros(time.Duration(sum.ValueAtQuantile(50))), micros(time.Duration(sum.ValueAtQuantile(99)))})
	}
	return all
}

// ping measures n round trips to each master at a distance, in parallel.
func (m *Masters) ping(d *Distance, n int) ([]*hdrhistogram.Histogram, error) {
	if err := m.lines.stretch(d.delays); err != nil {
		return nil, err
	}
	all := make([]*hdrhistogram.Histogram, len(d.delays))
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i := range all {
		all[i] = newHistogram()
		left := n + warmUp
		work.Go(func() {
			errs[i] = pingWhile(m.lines.urls[i], all[i], func() bool { left--; return left >= 0 })
		})
	}
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("bench: ping through a delay line: %w", err)
		}
	}
	return all, nil
}

// inRoundTrips adds the latencies in units of R.
func (t *Trial) inRoundTrips() {
	if t.distance == nil {
		return
	}
	r := micros(t.distance.R(t.Subject.Nodes))
	for part := range t.latency {
		for _, m := range []struct{ of, inR Metric }{{P50, P50R}, {P99, P99R}} {
			if v, ok := t.values[named(part, m.of)]; ok {
				t.Set(named(part, m.inR), v/r)
			}
		}
	}
}

// pinging measures, until the function that it returns is called, what a round
// trip to the first master takes while other things go on: the lines share this
// machine.
func (t *Trial) pinging() (stop func()) {
	if t.distance == nil {
		return func() {}
	}
	h := newHistogram()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := pingWhile(t.URLs()[0], h, func() bool {
			select {
			case <-over:
				return false
			case <-time.After(10 * time.Millisecond):
				return true
			}
		})
		if err != nil {
			t.Note("PING: %v", err)
		}
	}()
	return func() {
		close(over)
		<-ended
		if h.TotalCount() > 0 {
			t.Set(PingP50, micros(time.Duration(h.ValueAtQuantile(50))))
		}
	}
}

// pingWhile measures round trips to a master until next is false. Round trips
// before the connection has warmed up do not count.
func pingWhile(url string, h *hdrhistogram.Histogram, next func() bool) error {
	conn, err := monitor.Dial(url, redis.DialReadTimeout(5*time.Second))
	if err != nil {
		return err
	}
	defer conn.Close()
	for cold := warmUp; next(); cold-- {
		began := time.Now()
		if _, err := conn.Do("PING"); err != nil {
			return err
		}
		if cold <= 0 {
			record(h, time.Since(began))
		}
	}
	return nil
}
