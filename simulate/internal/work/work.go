// Package work has what the callers of a schedule do.
package work

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Work is what the callers of one schedule do.
type Work struct {
	*promises.Scene
	estates  map[int]promises.Estate // what callers held when they crashed
	done     []int                   // how many actions each caller has begun
	requests *requesting
	Outcome  uint64        // over who got the lock and how it ended, without times
	Armed    []*plan.Fault // faults that wait for a client to get the lock

	Began  func(p *promises.Caller, action int)          // called for each action
	Waited func(c *promises.Client, since time.Duration) // called for each call that took a lock, or failed to
}

func New(t *promises.Scene) *Work {
	return &Work{
		Scene:    t,
		estates:  map[int]promises.Estate{},
		done:     make([]int, max(t.Config.Clients, len(t.Schedule.Actions))),
		requests: newRequesting(t.Schedule),
		Outcome:  world.HashOffset,
		Began:    func(*promises.Caller, int) {},
		Waited:   func(*promises.Client, time.Duration) {},
	}
}

// Act performs the actions that a caller has left.
func (t *Work) Act(p *promises.Caller) {
	t.adopt(p)
	list, done := t.Schedule.Actions[p.Number], &t.done[p.Number]
	for *done < len(list) && !t.Healed && !p.Client.Closing {
		a := list[*done]
		*done++
		think := a.Think
		if a.At > 0 {
			think = a.At - p.Clock().Monotonic()
		}
		p.Sleep(context.Background(), think)
		t.Began(p, *done-1)
		if t.Healed || p.Client.Closing {
			return
		}
		t.perform(p, a)
	}
}

// note folds how an operation ended into the outcome.
func (t *Work) note(p *promises.Caller, err error) {
	t.Votes(p, err)
	code := 1
	for i, e := range []error{
		redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrLost, redlock.ErrExpired, redlock.ErrNotHeld,
	} {
		if errors.Is(err, e) {
			code = i + 2
			break
		}
	}
	for _, b := range strconv.Itoa(p.Number*100000 + t.done[p.Number]*10 + code) {
		t.Outcome = (t.Outcome ^ uint64(b)) * world.HashPrime
	}
}

// TakeOnce takes a lock and gives it back.
func (t *Work) TakeOnce(p *promises.Caller, a plan.Action) {
	h, err := t.lock(p, context.Background(), a)
	if err != nil {
		return
	}
	t.Check.Leave(h.claim)
	p.Call(func() { h.Unlock(context.Background()) })
}
