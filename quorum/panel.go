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
	r := p.begin(cmd.Op, judge, w, Tally{nodes: len(p.nodes), need: p.need}, everybody)
	p.put(r, cmd)
	return r
}

// AskOne puts cmd to node i alone, whose vote decides.
func (p *Panel) AskOne(i int, cmd *node.Command, judge Judge) *Round {
	r := p.begin(cmd.Op, judge, nil, Tally{nodes: 1, need: 1}, only(i))
	p.put(r, cmd)
	return r
}

// AskRest puts cmd to every node but gate, whose grant is counted already.
func (p *Panel) AskRest(gate int, cmd *node.Command, judge Judge) *Round {
	tally := Tally{nodes: len(p.nodes), need: p.need}
	tally.Count(Granted)
	r := p.begin(cmd.Op, judge, nil, tally, allBut(gate))
	p.put(r, cmd)
	r.conclude() // the gate may be all there is
	return r
}

// Survey puts cmd to every node and is decided when all have answered or the
// node timeout fires. An answer of any kind counts as Granted.
func (p *Panel) Survey(cmd *node.Command) *Round {
	heard := func(node.Reply) Vote { return Granted }
	r := p.begin(cmd.Op, heard, nil, Tally{nodes: len(p.nodes)}, everybody)
	p.put(r, cmd)
	return r
}

// electorate says which nodes a round asks. The gate of allBut has granted.
type electorate struct {
	one    int
	except bool
}

var everybody = electorate{one: -1, except: true}

func only(i int) electorate   { return electorate{one: i} }
func allBut(i int) electorate { return electorate{one: i, except: true} }

func (e electorate) has(i int) bool { return (i == e.one) != e.except }

// begin takes a round for its next life. All of it is in place before the first
// node is asked, because a node may answer before Do returns, and the node
// timeout may fire before the last is asked.
func (p *Panel) begin(op node.Op, judge Judge, w Watcher, t Tally, asked electorate) *Round {
	r, _ := p.rounds.Get().(*Round)
	if r == nil {
		r = newRound(p)
	}
	r.mu.Lock()
	r.judge, r.watcher, r.op, r.tally = judge, w, op, t
	r.asked, r.decided = asked, false
	r.holders.Store(1) // the owner
	for i := range r.ballots {
		r.ballots[i] = Ballot{}
		if asked.has(i) {
			r.holders.Add(1)
		} else if asked.except {
			r.ballots[i].Vote = Granted
		}
	}
	if len(r.ready) > 0 {
		<-r.ready // decided after its owner had stopped waiting
	}
	r.started = p.watch.Now()
	r.mu.Unlock()
	p.agenda.Set(&r.alarm, p.timeout, r)
	return r
}

// put asks the round's nodes. The owner's hold keeps the round from being used
// again meanwhile, whatever has been decided.
func (p *Panel) put(r *Round, cmd *node.Command) {
	for i, n := range p.nodes {
		if r.asked.has(i) {
			n.Do(cmd, r.done[i])
		}
	}
}
