package quorum

import (
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
)

// Panel is the fixed set of nodes that vote. It is safe for concurrent use.
type Panel struct {
	nodes   []node.Node
	need    int
	agenda  *drift.Agenda
	watch   *drift.Stopwatch
	timeout time.Duration
	rounds  sync.Pool
}

// NewPanel returns a panel of nodes whose rounds wait timeout for an answer. A
// round is won by a quorum of the nodes.
func NewPanel(nodes []node.Node, agenda *drift.Agenda, watch *drift.Stopwatch, timeout time.Duration) *Panel {
	return &Panel{nodes: nodes, need: Size(len(nodes)), agenda: agenda, watch: watch, timeout: timeout}
}

// Weaken lets fewer grants than a quorum win. It exists to show what the
// majority is for (S16) and is reached by the simulator only.
func (p *Panel) Weaken(need int) { p.need = need }

// Nodes returns the nodes in their fixed order, which is that of the ballots.
func (p *Panel) Nodes() []node.Node { return p.nodes }

// Ask puts cmd to every node. Without a watcher the round belongs to the
// caller, who waits for Ready and calls Free; a watched round looks after
// itself.
func (p *Panel) Ask(cmd *node.Command, judge Judge, w Watcher) *Round {
	return p.ask(cmd, judge, w, Tally{nodes: len(p.nodes), need: p.need}, -1)
}

// AskRest puts cmd to every node but gate, whose grant is counted already.
func (p *Panel) AskRest(gate int, cmd *node.Command, judge Judge) *Round {
	return p.ask(cmd, judge, nil, Tally{nodes: len(p.nodes), need: p.need}, gate)
}

// AskOne puts cmd to node i alone, whose vote decides.
func (p *Panel) AskOne(i int, cmd *node.Command, judge Judge) *Round {
	r := p.begin(cmd.Op, judge, nil, Tally{nodes: 1, need: 1})
	r.await(i)
	p.nodes[i].Do(cmd, r.done[i])
	return r
}

// Survey puts cmd to every node and is decided when all have answered or the
// node timeout fires. An answer of any kind counts as Granted.
func (p *Panel) Survey(cmd *node.Command) *Round {
	heard := func(node.Reply) Vote { return Granted }
	return p.ask(cmd, heard, nil, Tally{nodes: len(p.nodes)}, -1)
}

// ask puts cmd to every node, but to a gate that has granted already.
// Everything is in place before the first node is asked, because a node may
// answer before Do returns.
func (p *Panel) ask(cmd *node.Command, judge Judge, w Watcher, t Tally, gate int) *Round {
	r := p.begin(cmd.Op, judge, w, t)
	for i := range p.nodes {
		if i == gate {
			r.seat(i)
		} else {
			r.await(i)
		}
	}
	for i, n := range p.nodes {
		if i != gate {
			n.Do(cmd, r.done[i])
		}
	}
	if gate >= 0 {
		r.conclude()
	}
	return r
}

// begin takes a round for its next life, held by its owner.
func (p *Panel) begin(op node.Op, judge Judge, w Watcher, t Tally) *Round {
	r, _ := p.rounds.Get().(*Round)
	if r == nil {
		r = newRound(p)
	}
	r.mu.Lock()
	r.judge, r.watcher, r.op, r.tally = judge, w, op, t
	r.decided = false
	r.holders.Store(1)
	clear(r.ballots)
	if len(r.ready) > 0 {
		<-r.ready // decided after its owner had stopped waiting
	}
	r.started = p.watch.Now()
	r.mu.Unlock()
	p.agenda.Set(&r.alarm, p.timeout, r)
	return r
}
