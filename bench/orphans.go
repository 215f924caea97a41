package bench

import (
	"context"
	"errors"
	"runtime"
	"strconv"
)

// Orphans takes and releases free locks so often, by 64 callers, and then looks
// for keys without a holder.
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
