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

// MaxNodes is how many nodes a Panel can have.
const MaxNodes = 64

// NewPanel returns a panel of at most MaxNodes nodes whose rounds wait timeout for an answer. A
// round is won by a quorum of the nodes.
func NewPanel(nodes []node.Node, agenda *drift.Agenda, watch *drift.Stopwatch, timeout time.Duration) *Panel {
	return &Panel{nodes: nodes, need: Size(len(nodes)), agenda: agenda, watch: watch, timeout: timeout}
}

// Weaken lets fewer grants than a quorum win. It exists to show what the
// majority is for (S16) and is reached by the simulator only.
func (p *Panel) Weaken(need int) { p.need = need }

// Nodes returns the nodes in their fixed order, which is that of the ballots.
func (p *Panel) Nodes() []node.Node { return p.nodes }

// Question is what a round asks, and of whom: of every node that has not
// granted already and is not absent.
type Question struct {
	Command *node.Command
	Judge   Judge
	Watcher Watcher // nil: the decision is told by Round.Ready
	Granted Set     // nodes that granted before: counted, not asked
	Absent  Set     // nodes that are left out: counted as failed

	// Since is when the asking began, which the node timeout counts from; zero:
	// now. Who has just read the panel's stopwatch need not read it again.
	Since drift.Instant
}

// Ask puts a question to the nodes. A round is won by a quorum of all nodes,
// asked or not. Without a watcher the round belongs to the caller, who waits
// for Ready and calls Free; a watched round looks after itself.
func (p *Panel) Ask(q Question) *Round {
	return p.ask(q, Tally{nodes: len(p.nodes), need: p.need})
}

// AskOne puts cmd to node i alone, whose vote decides.
func (p *Panel) AskOne(i int, cmd *node.Command, judge Judge) *Round {
	others := p.all() &^ Only(i)
	t := Tally{nodes: len(p.nodes), need: 1}
	return p.ask(Question{Command: cmd, Judge: judge, Absent: others}, t)
}

// Survey puts cmd to every node and is decided when all have answered or the
// node timeout fires. An answer of any kind counts as Granted.
func (p *Panel) Survey(cmd *node.Command) *Round {
	heard := func(node.Reply) Vote { return Granted }
	return p.ask(Question{Command: cmd, Judge: heard}, Tally{nodes: len(p.nodes)})
}

func (p *Panel) all() Set { return Set(1)<<len(p.nodes) - 1 }

func (p *Panel) ask(q Question, t Tally) *Round {
	r := p.begin(q, t)
	asked := p.all() &^ q.Granted &^ q.Absent
	for i, n := range p.nodes {
		if asked.Has(i) {
			n.Do(q.Command, r.done[i])
		}
	}
	if q.Granted != 0 {
		r.conclude() // nobody may be left to decide it
	}
	return r
}

// begin takes a round for its next life. All of it is in place before the first
// node is asked, because a node may answer before Do returns, and the node
// timeout may fire before the last is asked.
func (p *Panel) begin(q Question, t Tally) *Round {
	r, _ := p.rounds.Get().(*Round)
	if r == nil {
		r = newRound(p)
	}
	r.mu.Lock()
	r.judge, r.watcher, r.op = q.Judge, q.Watcher, q.Command.Op
	r.decided, r.waited = false, false
	r.holders.Store(1) // the owner
	for i := range r.ballots {
		switch {
		case q.Granted.Has(i):
			r.ballots[i] = Ballot{Vote: Granted}
			t.Count(Granted)
		case q.Absent.Has(i):
			r.ballots[i] = Ballot{Vote: Absent}
			t.Count(Failed)
		default:
			r.ballots[i] = Ballot{}
			r.holders.Add(1)
		}
	}
	r.tally = t
	if len(r.ready) > 0 {
		<-r.ready // decided after its owner had stopped waiting
	}
	r.started = q.Since
	if q.Since == (drift.Instant{}) {
		r.started = p.watch.Now()
	}
	r.mu.Unlock()
	p.agenda.SetFrom(&r.alarm, r.started, p.timeout, r)
	return r
}
