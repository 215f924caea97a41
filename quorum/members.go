package quorum

import (
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Members is the fixed set of nodes that vote. It is safe for concurrent use.
type Members struct {
	nodes   []node.Node
	need    int
	timers  *drift.Timers
	watch   *drift.Stopwatch
	timeout time.Duration
	rounds  sync.Pool
	steps   *seam.Steps
	timed   bool // every ballot says how long its answer took
	inUse   int  // rounds that were not given back; counted only in the simulator
}

// MaxNodes is how many nodes Members can be.
const MaxNodes = 64

// NewMembers returns the Members that these nodes are, at most MaxNodes. Their rounds wait
// timeout for answers, and are won by need grants: a quorum, see Size.
func NewMembers(nodes []node.Node, need int, timers *drift.Timers, watch *drift.Stopwatch, timeout time.Duration) *Members {
	return &Members{nodes: nodes, need: need, timers: timers, watch: watch, timeout: timeout}
}

// In makes every use of a round's mutex one of the given steps. It is called
// before any node is asked.
func (m *Members) In(s *seam.Steps) { m.steps = s }

// TimeAnswers has every ballot say how long its answer took. Without it no clock is
// read for an answer. It is called before any node is asked.
func (m *Members) TimeAnswers() { m.timed = true }

// InUse returns how many rounds are in use. They are counted only if In was given
// steps: nothing runs side by side then.
func (m *Members) InUse() int { return m.inUse }

// Need returns how many grants win.
func (m *Members) Need() int { return m.need }

// Nodes returns the nodes in their fixed order, which is that of the ballots.
func (m *Members) Nodes() []node.Node { return m.nodes }

// Question is what a round asks, and of whom: of every node that has not
// granted already and is not absent.
type Question struct {
	Command *wire.Command
	Judge   Judge
	Watcher Watcher // nil: Round.Ready has the decision
	Granted Set     // nodes that granted before: counted, not asked
	Absent  Set     // nodes that are left out: counted as failed

	// Since is when the asking began, which the timeout counts from; zero: now.
	// A caller that has just read the stopwatch of the Members need not read it again.
	Since drift.Instant
	// Timeout is how long answers are waited for; zero: the node timeout. With a longer
	// Timeout the round ends at half of it, or later, if a quorum has answered by then.
	Timeout time.Duration
}

// Ask puts a question to the nodes. A round is won by a quorum of all nodes,
// asked or not. Without a watcher the round belongs to the caller, which must
// wait for Ready and call Free; a watched round looks after itself.
func (m *Members) Ask(q Question) *Round {
	return m.ask(q, Tally{nodes: len(m.nodes), need: m.need})
}

// Survey puts cmd to every node and is decided when all have answered or the
// node timeout fires. An answer of any kind counts as Granted. The watcher may be nil, as that of
// a Question.
func (m *Members) Survey(cmd *wire.Command, w Watcher) *Round {
	return m.ask(Question{Command: cmd, Judge: heard{}, Watcher: w}, Tally{nodes: len(m.nodes)})
}

// heard is the judge of a survey.
type heard struct{}

func (heard) Judge(wire.Op, wire.Reply) Vote { return Granted }

func (m *Members) all() Set { return Set(1)<<len(m.nodes) - 1 }

func (m *Members) ask(q Question, t Tally) *Round {
	r, _ := m.rounds.Get().(*Round)
	if r == nil {
		r = newRound(m)
	}
	if m.steps != nil {
		m.inUse++
	}
	r.begin(q, t)
	asked := m.all() &^ q.Granted &^ q.Absent
	for i, n := range m.nodes {
		if asked.Has(i) {
			n.Do(q.Command, r.done[i])
		}
	}
	return r
}
