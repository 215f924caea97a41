package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/naive"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// The fast transport stands for the production transport: after the same
// commands and the same faults both give the same answers, have left the same
// keys, keep a master out alike, and owe nothing.
func TestFast_transport_is_equal_to_the_production_transport(t *testing.T) {
	for seed := range uint64(20) {
		fast, production := ordeal(t, seed, plan.Fast), ordeal(t, seed, plan.Production)
		if len(fast) != len(production) || len(fast) == 0 {
			t.Fatalf("seed %d: %d and %d lines", seed, len(fast), len(production))
		}
		for i := range fast {
			if fast[i] != production[i] {
				t.Errorf("seed %d:\n      fast: %s\nproduction: %s", seed, fast[i], production[i])
				break
			}
		}
	}
}

// An ordeal is a row of trials, each of which begins with a fault, during which
// nothing is compared, and ends in calm.
const (
	oneTrial  = 8 * time.Second
	trials    = 6
	faultLast = 2500 * time.Millisecond
	watched   = 4 * time.Second // connected again, and in quarantine still
	calmAgain = 5 * time.Second
)

// ordeal returns what a client saw of one master, line by line.
func ordeal(t *testing.T, seed uint64, transport plan.Transport) []string {
	t.Helper()
	cfg := plan.Config{Nodes: 1, Clients: 1, Faults: plan.Calm, Duration: trials * oneTrial, Transport: transport}
	cfg.Script = func(dice *world.Dice, _ *plan.Config) (faults []plan.Fault, actions [][]plan.Action) {
		for i := range trials {
			faults = append(faults, trouble(dice, time.Duration(i)*oneTrial+time.Second))
		}
		return faults, [][]plan.Action{nil}
	}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	s := plan.Draw(&cfg, seed)
	var lines []string
	_, err := run(s, options{unhealed: true, workload: func(p *promises.Caller, _ *redlock.Client) {
		e := &enduring{Caller: p, dice: world.NewDice(seed, "ordeal")}
		for i := range trials {
			e.trial(i, &s.Faults[i])
		}
		p.Client.Links[0].Close()
		lines = e.lines
	}})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// trouble draws a fault that is over after a while.
func trouble(dice *world.Dice, at time.Duration) plan.Fault {
	f := plan.Fault{At: at, For: faultLast, Node: 0, Client: 0}
	f.Kind = []plan.Kind{plan.Reset, plan.CutOut, plan.CutIn, plan.Partition, plan.Slow, plan.Pause, plan.Restart, plan.RestartEmpty, plan.Errors, plan.Errors, plan.Flush, plan.Step, plan.Evict}[dice.Below(13)]
	switch f.Kind {
	case plan.Slow:
		f.Size = 100 * time.Millisecond
	case plan.Step:
		f.Size, f.For = 10*time.Second, 0
	case plan.Errors:
		f.Code = []string{"LOADING", "MISCONF", "OOM", "BUSY", "NOREPLICAS"}[dice.Below(5)]
	case plan.Flush, plan.Evict, plan.Reset:
		f.For = 0
	}
	return f
}

// enduring is a client in an ordeal.
type enduring struct {
	*promises.Caller
	dice  *world.Dice
	lines []string
}

func (e *enduring) until(at time.Duration) {
	if d := at - e.Clock().Monotonic(); d > 0 {
		e.Sleep(context.Background(), d)
	}
}

func (e *enduring) trial(i int, f *plan.Fault) {
	begin := f.At
	for j := range 20 { // each acquire with its release: whatever became of them, nothing stays
		e.until(begin + time.Duration(j)*faultLast/20)
		value := fmt.Sprintf("w-%d-%d", i, j)
		e.Client.Links[0].Do(wire.Acquire("w", value, 10*time.Second), func(wire.Reply) {})
		if e.dice.Chance(500) {
			e.until(begin + time.Duration(j)*faultLast/20 + faultLast/50)
		}
		e.Client.Links[0].Do(e.release("w", value), func(wire.Reply) {})
	}
	e.until(begin + watched)
	e.say(f, wire.Acquire("q", fmt.Sprint("q-", i), time.Second))
	e.say(f, e.release("q", fmt.Sprint("q-", i)))

	e.until(begin + calmAgain)
	for range 12 {
		if e.dice.Chance(200) {
			clear(e.Client.Masters[0].Loaded) // SCRIPT FLUSH (L11)
		}
		e.say(f, e.draw())
	}
	for _, key := range []string{"a", "b"} {
		for _, value := range []string{"x", "y"} {
			e.say(f, e.release(key, value))
		}
	}
	for range 5 { // a heartbeat may be under way
		if !e.Client.Links[0].Quiet() {
			e.Sleep(context.Background(), 10*time.Millisecond)
		}
	}
	var left []string
	for key := range e.Client.Masters[0].Keys.Copy() {
		if key != wire.MarkerKey("") {
			left = append(left, key)
		}
	}
	slices.Sort(left)
	e.lines = append(e.lines, fmt.Sprintf("%s: left %v, quiet: %v", f, left, e.Client.Links[0].Quiet()))
}

// draw draws a command.
func (e *enduring) draw() *wire.Command {
	key, value := []string{"a", "b"}[e.dice.Below(2)], []string{"x", "y"}[e.dice.Below(2)]
	switch e.dice.Below(5) {
	case 0, 1:
		return wire.Acquire(key, value, time.Minute)
	case 2:
		return wire.Extend(key, value, time.Minute)
	case 3:
		return wire.Repair(key, value, time.Minute)
	}
	return e.release(key, value)
}

func (e *enduring) release(key, value string) *wire.Command {
	return wire.Release(key, wire.QueueOf("", key), value, 10*time.Second)
}

// say gives a command and notes the answer.
func (e *enduring) say(f *plan.Fault, cmd *wire.Command) {
	v, err := naive.Send(e.Caller, 0, cmd)
	e.lines = append(e.lines, fmt.Sprintf("%s: %s %s %s: %v, %s", f, cmd.Op, cmd.Keys[0], cmd.Args[0], v, class(err)))
}

// class is an error without what differs from run to run.
func class(err error) string {
	var refusal *wire.ServerError
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	for _, known := range []error{guard.ErrQuarantined, node.ErrSilent, node.ErrFull, node.ErrDown, node.ErrUnknown} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return strings.TrimSpace(fmt.Sprint(err))
}
