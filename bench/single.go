package bench

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"time"
)

// Extending lengthens one held lock again and again.
func Extending() Workload {
	return Workload{Name: "extend", Title: "extend a held lock, one caller",
		Run: func(ctx context.Context, t *Trial) error { return t.extending(ctx) }}
}

func (t *Trial) extending(ctx context.Context) error {
	client, err := t.Subject.Open(ctx, t.URLs())
	if err != nil {
		return err
	}
	defer client.Close()
	name := t.Prefix + "held"
	lease, err := client.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	for range warmUp {
		if err := lease.Extend(ctx); err != nil {
			return err
		}
	}
	runtime.GC()
	h := newHistogram()
	from := t.read()
	for began := from.at; began.Sub(from.at) < t.Length; {
		if err := lease.Extend(ctx); err != nil {
			return err
		}
		now := time.Now()
		record(h, now.Sub(began))
		began = now
	}
	t.cost(from, t.read(), h.TotalCount())
	t.latencies("", h)
	return lease.Unlock(ctx)
}

// Orphans takes and releases free locks so often, by 64 callers, and then looks
// for keys that nobody holds.
func Orphans(pairs int) Workload {
	return Workload{
		Name: "orphans", Title: "keys left by " + strconv.Itoa(pairs) + " pairs",
		Run: func(ctx context.Context, t *Trial) error { return t.orphans(ctx, pairs) },
	}
}

func (t *Trial) orphans(ctx context.Context, pairs int) error {
	const callers = 64
	before := runtime.NumGoroutine()
	crew, err := t.hire(ctx, callers)
	if err != nil {
		return err
	}
	from := t.read()
	crew.times(ctx, (pairs+callers-1)/callers)
	t.cost(from, t.read(), crew.pairs())
	t.Set("pairs", float64(crew.pairs()))
	if crew.pairs() == 0 {
		_, err = crew.failures()
		return errors.Join(errors.New("not one pair"), err, crew.client.Close())
	}
	return t.dismiss(crew, before)
}
