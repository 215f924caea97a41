package explore

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file has one run of a small world. Time does not order its events: whatever
// can happen next waits in strands, and the search chooses a strand.

// strand is a queue of events of which only the first can be next: the commands on a
// connection, a timer of a client, a fault. The same strand has the same name in
// every run, whatever happens in between.
type strand struct {
	name   strandName
	host   int8
	queue  []happening
	lazy   bool         // a fault, or the end of a TTL: comes last unless the search wants it earlier
	ready  func() bool  // whether the first event can happen; nil: always
	caused func() []int // the steps that made it ready; nil: none
}

// strandName tells strands apart: their kind, whose they are, and a number.
type strandName struct {
	kind           strandKind
	client, master int8
	number         int16
}

type strandKind int8

const (
	strandCommands strandKind = iota + 1 // from a client to a master
	strandReplies                        // back
	strandEars                           // subscriptions, from a client to a master
	strandNews                           // messages, back
	strandTimer                          // one timer of a client
	strandWork                           // a caller's work is done
	strandTick                           // a client's clock moves on
	strandExpiry                         // the end of the TTL of one write to a master
	strandReset                          // a connection breaks
	strandCrash                          // a client
	strandForget                         // a master restarts without its memory
	strandTrust                          // a master that forgot may grant again
	strandCancel                         // a caller's context ends
	strandPass                           // nothing else can happen: time passes for all
)

func (n strandName) String() string {
	c, m := nameOf(int(n.client)), string(rune('A'+n.master))
	switch n.kind {
	case strandCommands:
		return fmt.Sprintf("%s takes a command of %s", m, c)
	case strandReplies:
		return fmt.Sprintf("%s hears from %s", c, m)
	case strandEars:
		return fmt.Sprintf("%s notes what %s listens to", m, c)
	case strandNews:
		return fmt.Sprintf("%s hears a message of %s", c, m)
	case strandTimer:
		return fmt.Sprintf("timer %d of %s fires", n.number+1, c)
	case strandWork:
		return fmt.Sprintf("%s has done its work", c)
	case strandTick:
		return fmt.Sprintf("time passes for %s", c)
	case strandExpiry:
		return fmt.Sprintf("the TTL of write %d to %s is over", n.number+1, m)
	case strandReset:
		return fmt.Sprintf("the connection of %s to %s breaks", c, m)
	case strandCrash:
		return fmt.Sprintf("%s crashes", c)
	case strandForget:
		return fmt.Sprintf("%s forgets", m)
	case strandTrust:
		return fmt.Sprintf("%s may grant again", m)
	case strandCancel:
		return fmt.Sprintf("the caller at %s gives up", c)
	}
	return "nothing is left to do: time passes"
}

// happening is one event that waits in a strand.
type happening struct {
	what  func()
	cause int // the step that put it there; -1: it was there from the beginning
}

// step is an event that happened.
type step struct {
	strand strandName
	touch  touch
	causes []int // steps without which it could not have happened
}

// touch is what a step touched. The search tells from it which steps could as well
// have happened in the other order.
type touch struct {
	host  int8 // clients from 0, masters from firstMaster; -1: every host
	kind  strandKind
	moved bool  // it changed the master's keys, or made the client do something
	round int16 // of a reply: which question it answers
	vote  vote  // of a reply
}

// vote is as much of a reply as tells replies to one question apart.
type vote struct {
	value any
	yes   bool
}

const (
	firstMaster int8 = 64
	everybody   int8 = -1
)

// dependent reports whether the order of two steps matters; a comes before b. Steps at
// different hosts may always be exchanged, and so may two steps that changed nothing. At a
// client, a vote that decides nothing may be exchanged with a tick, a crash and the votes of
// other rounds, and also with an equal vote of its own round that comes later.
func (a *touch) dependent(b *touch) bool {
	switch {
	case a.host == everybody || b.host == everybody:
		return true
	case a.host != b.host:
		return false
	case a.host >= firstMaster:
		return a.moved || b.moved
	case !a.moved && !b.moved:
		return false
	case a.kind == strandReplies && b.kind == strandReplies && a.round == b.round && a.vote == b.vote:
		// The first of them does not decide, or whichever is first does, and
		// then it does not matter which: a yes asks for nothing more.
		return a.moved && !a.vote.yes
	case a.moved && b.moved:
		return true
	}
	quiet, loud := a, b
	if a.moved {
		quiet, loud = b, a
	}
	switch loud.kind {
	case strandTick, strandCrash:
		return false
	case strandReplies:
		return quiet.kind == strandReplies && quiet.round == loud.round
	}
	return true
}

// fellow reports whether both are answers to one question.
func (a *touch) fellow(b *touch) bool {
	return a.host == b.host && a.kind == strandReplies && b.kind == strandReplies && a.round == b.round
}

// miniature is a small world in the middle of a run.
type miniature struct {
	world   *World
	clients []*explorer
	masters []*cell
	strands []*strand
	byName  map[strandName]*strand
	check   watcher

	steps   []step
	now     *touch // of the step that is happening; nil: none
	looking bool   // the checks are reading; their reads belong to no step
	passes  int
	settled bool
}

func newMiniature(w *World) *miniature {
	x := &miniature{world: w, byName: map[strandName]*strand{}}
	x.check.run = x
	masters := w.masters
	if masters == 0 {
		masters = 3
	}
	for i := range masters {
		x.masters = append(x.masters, newCell(x, i))
	}
	if w.ahead {
		last := x.masters[masters-1]
		last.keys.SetCounter(wire.QueueOf("", exploredLock).Counter(), farAhead)
	}
	for i := range w.clients {
		x.clients = append(x.clients, newExplorer(x, i))
	}
	return x
}

// farAhead is a counter above what a client would propose.
const farAhead = 1 << 52

// begin has every client run its first step, which touches no other host, and prepares the
// faults.
func (x *miniature) begin() {
	for _, c := range x.clients {
		c.begin()
	}
	x.prepareFaults()
}

// put adds an event to the strand of that name, which it makes if need be.
func (x *miniature) put(name strandName, host int8, what func()) *strand {
	st := x.byName[name]
	if st == nil {
		st = &strand{name: name, host: host}
		x.byName[name] = st
		x.strands = append(x.strands, st)
	}
	st.queue = append(st.queue, happening{what: what, cause: len(x.steps) - 1})
	return st
}

// enabled lists the strands that can be next. Lazy ones come last.
func (x *miniature) enabled(dst []*strand) []*strand {
	dst = dst[:0]
	for _, st := range x.strands {
		if !st.lazy && st.open() {
			dst = append(dst, st)
		}
	}
	if len(dst) == 0 && !x.finished() && x.passes < maxPasses {
		dst = append(dst, x.passing())
	}
	for _, st := range x.strands {
		if st.lazy && st.open() {
			dst = append(dst, st)
		}
	}
	return dst
}

func (st *strand) open() bool {
	return len(st.queue) > 0 && (st.ready == nil || st.ready())
}

// maxPasses is how often time may pass for all before a client that still waits
// counts as stuck.
const maxPasses = 100

// passing returns the strand to choose when nothing else can happen.
func (x *miniature) passing() *strand {
	return &strand{name: strandName{kind: strandPass}, host: everybody, queue: []happening{{what: x.pass, cause: -1}}}
}

// pass moves the clocks of all clients to where something is due for one of them.
func (x *miniature) pass() {
	x.passes++
	least := time.Duration(-1)
	for _, c := range x.clients {
		if d := c.untilNext(); d > 0 && (least < 0 || d < least) {
			least = d
		}
	}
	if least < 0 {
		x.passes = maxPasses // nothing will ever happen
		return
	}
	for _, c := range x.clients {
		c.advance(least)
	}
}

// do makes the first event of a strand happen.
func (x *miniature) do(st *strand) {
	h := st.queue[0]
	s := step{strand: st.name, touch: touch{host: st.host, kind: st.name.kind}}
	if h.cause >= 0 {
		s.causes = append(s.causes, h.cause)
	}
	if st.caused != nil {
		s.causes = append(s.causes, st.caused()...)
	}
	x.steps = append(x.steps, s)
	x.now = &x.steps[len(x.steps)-1].touch
	if st.name.kind != strandPass {
		st.queue = st.queue[1:]
	}
	h.what()
	if c := x.client(st.host); c != nil {
		c.settle()
	}
	x.now = nil
	x.check.look()
}

// step is the number of the step that is happening.
func (x *miniature) step() int { return len(x.steps) - 1 }

// moved notes that the current step did something that others could see.
func (x *miniature) moved() {
	if x.now != nil && !x.looking {
		x.now.moved = true
	}
}

func (x *miniature) client(host int8) *explorer {
	if host >= 0 && int(host) < len(x.clients) {
		return x.clients[host]
	}
	return nil
}

// finished reports whether every caller has ended.
func (x *miniature) finished() bool {
	for _, c := range x.clients {
		if c.waits() {
			return false
		}
	}
	return true
}

// end stops the clients that are still waiting, so that no coroutine is left.
func (x *miniature) end() {
	for _, c := range x.clients {
		c.kill()
	}
}
