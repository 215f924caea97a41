package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/redlock"
)

// fence shows what no lock can prevent, and how a fencing token stops it: a holder
// that stands still between looking at its lease and writing.
func (d *demo) fence(ctx context.Context) error {
	d.beat(1)
	d.name += "-fenced"
	options := []redlock.MutexOption{redlock.Fenced(), redlock.TTL(d.ttl * 2 / 3), redlock.NoRenew()}
	var file redlock.Fence // refuses tokens below the highest that it has seen

	old, err := d.alice.Mutex(d.name, options...).Lock(ctx)
	if err != nil {
		return err
	}
	var pic picture
	eventually(d.ttl/5, func() bool { pic = d.look(ctx); return pic.aliceEverywhere() }) // a quorum has, the last may be late
	d.say(pic, "a fenced lock: alice has it, with token %s", digits(old.Token()))
	d.add("her lease is valid, she begins to write, and stands still")
	next, err := d.bob.Mutex(d.name, options...).Lock(ctx)
	if err != nil {
		return err
	}
	if err := file.Check("file", next.Token()); err != nil {
		return fmt.Errorf("bob's write was refused: %w", err)
	}
	d.say(d.look(ctx), "her lease has ended: bob writes, with token %s", digits(next.Token()))
	if err := file.Check("file", old.Token()); !errors.Is(err, redlock.ErrStale) {
		return fmt.Errorf("alice's write with token %d after %d: got %v, not %v", old.Token(), next.Token(), err, redlock.ErrStale)
	}
	d.say(d.look(ctx), "alice goes on, and her write arrives: refused")
	d.add("the file has seen token %s: %s is too old", digits(next.Token()), digits(old.Token()))
	return next.Unlock(ctx)
}

// digits are the last of a token, which is long.
func digits(token uint64) string {
	const last = 1_000_000_000
	if token < last {
		return fmt.Sprint(token)
	}
	return fmt.Sprintf("…%09d", token%last)
}
