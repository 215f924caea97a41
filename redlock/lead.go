package redlock

import "context"

// Run has this process lead whenever it can: it campaigns with value, runs lead, resigns
// when lead has returned, and campaigns again. It returns when ctx has ended, or when lead
// returns an error while this process leads.
//
// The context given to lead is derived from ctx, and also ends when leadership is lost. The
// lease is renewed until lead has returned, whatever happens to ctx: no other process leads
// beside work that still winds down. So lead must return soon after its context has ended; see
// StopWithin.
// If leadership was lost, Run ignores the error of lead and campaigns again.
func (e *Election) Run(ctx context.Context, value string, lead func(ctx context.Context) error) error {
	for {
		lease, err := e.Campaign(ctx, value)
		if err != nil {
			return err
		}
		var failed error
		lost := false
		lease.run(ctx, func(ctx context.Context) error {
			failed = lead(ctx)
			lost = lease.Err() != nil
			return nil
		})
		switch {
		case failed != nil && !lost:
			return failed
		case ctx.Err() != nil:
			return ended(ctx)
		}
	}
}

// IsLeader reports whether this process leads by a lease of this handle, and the lease is
// valid. It asks no master.
func (e *Election) IsLeader() bool {
	lease := e.led.Load()
	return lease != nil && lease.Valid()
}
