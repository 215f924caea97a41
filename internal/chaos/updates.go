package chaos

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// lostUpdates finds updates that were made under a valid lease and that
// another client with a valid lease has overwritten without having seen them.
//
// A process that is stopped between its last look at the lease and its write
// can write when the lease has ended, and overwrite the writes of others (S7). No
// lock can prevent that, so such writes are counted by lateWrites and are not
// held against the lock.
func (h *History) lostUpdates(register string) (findings []Finding) {
	writes, err := h.storage.all(register)
	if err != nil {
		return []Finding{{Check: LostUpdate, At: h.start, Lock: register, Text: err.Error()}}
	}
	position := map[string]int{"": -1}
	for i, w := range writes {
		position[w.id] = i
	}
	for i, w := range writes {
		u := h.Updates[w.id]
		if u == nil || !u.Covered {
			continue
		}
		for _, missed := range writes[position[w.saw]+1 : i] {
			if other := h.Updates[missed.id]; other != nil && other.Covered {
				findings = append(findings, Finding{
					Check: LostUpdate, At: u.To, Lock: register,
					Text: fmt.Sprintf("%s was written at %s over %s, which it had not seen", u.ID, h.at(u.To), other.ID),
				})
			}
		}
	}
	return findings
}

// lateWrites counts the writes of processes that stood still past the end of
// their lease, or were killed in mid-write.
func (h *History) lateWrites(register string) (count int) {
	writes, err := h.storage.all(register)
	if err != nil {
		return 0
	}
	for _, w := range writes {
		if u := h.Updates[w.id]; u == nil || !u.Covered {
			count++
		}
	}
	return count
}

// allLateWrites counts them for every register.
func (h *History) allLateWrites() map[string]int {
	counts := map[string]int{}
	for _, w := range h.workloads {
		for _, register := range w.registers() {
			counts[register] = h.lateWrites(register)
		}
	}
	return counts
}

// swap is an update as porcupine sees it. One whose lease did not cover it is
// a blind write that happens at some time.
type swap struct {
	id, saw string
	covered bool
}

// swaps is a register that is read and written in one step.
var swaps = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		s := input.(swap)
		return !s.covered || state == s.saw, s.id
	},
	DescribeOperation: func(input, _ any) string {
		s := input.(swap)
		if !s.covered {
			return s.id + ", late"
		}
		return fmt.Sprintf("%s over %q", s.id, s.saw)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%q", state) },
}

// writer is the number of the client that an id begins with: c2.1.register0.17.
func writer(id string) (client int) {
	fmt.Sscanf(id, "c%d.", &client) // 0 for another form
	return client
}

// checkPatience is how long porcupine may think about one register.
const checkPatience = time.Minute

// linearizable checks that the updates of a register can be put in an order of
// atomic steps that agrees with the clock. If they cannot, there is a page
// that shows how far it goes.
func (h *History) linearizable(register string) []Finding {
	operations, err := h.operations(register)
	if err != nil {
		return []Finding{{Check: NotAtomic, At: h.start, Lock: register, Text: err.Error()}}
	}
	result, info := porcupine.CheckOperationsVerbose(swaps, operations, checkPatience)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return []Finding{{Check: NotAtomic, At: h.start, Lock: register, Text: fmt.Sprintf("no verdict on %d updates within %v", len(operations), checkPatience)}}
	}
	text := "see " + h.page(register)
	if err := porcupine.VisualizePath(swaps, info, h.page(register)); err != nil {
		text = err.Error()
	}
	return []Finding{{Check: NotAtomic, At: h.start, Lock: register, Text: text}}
}

func (h *History) operations(register string) (operations []porcupine.Operation, err error) {
	writes, err := h.storage.all(register)
	if err != nil {
		return nil, err
	}
	for _, w := range writes {
		op := porcupine.Operation{ClientId: writer(w.id), Input: swap{id: w.id, saw: w.saw}, Call: int64(h.start), Return: int64(now())}
		if u := h.Updates[w.id]; u != nil {
			op.Input, op.Call, op.Return = swap{u.ID, u.Saw, u.Covered}, int64(u.From), int64(u.To)
		}
		operations = append(operations, op)
	}
	return operations, nil
}
