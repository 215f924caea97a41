package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = 50 * time.Millisecond

// scripted is a node that answers when the test says so.
type scripted struct {
	addr  string
	atone *node.Reply // answer before Do returns

	mu   sync.Mutex
	open []func(node.Reply)
}

func (s *scripted) Addr() string { return s.addr }

func (s *scripted) Do(cmd *node.Command, done func(node.Reply)) {
	if s.atone != nil {
		done(*s.atone)
		return
	}
	s.mu.Lock()
	s.open = append(s.open, done)
	s.mu.Unlock()
}

// answer gives the oldest unanswered command its reply.
func (s *scripted) answer(r node.Reply) {
	s.mu.Lock()
	done := s.open[0]
	s.open = s.open[1:]
	s.mu.Unlock()
	done(r)
}

func (s *scripted) Subscribe(string, func()) func() { return func() {} }
func (s *scripted) Close() error                    { return nil }

var (
	yes  = node.Reply{Value: "OK"}
	no   = node.Reply{}
	down = node.Reply{Err: &node.Error{Err: node.ErrDown}}
)

func judge(r node.Reply) Vote {
	if r.Value == "OK" {
		return Granted
	}
	return Refused
}

// set up n scripted nodes under a mocked clock.
func scene(t *testing.T, n int) (*Panel, []*scripted, *clock.Mock) {
	clk := clock.NewMock()
	watch := drift.NewStopwatch(clk)
	agenda := drift.NewAgenda(watch)
	t.Cleanup(agenda.Close)
	nodes := make([]node.Node, n)
	scripts := make([]*scripted, n)
	for i := range nodes {
		scripts[i] = &scripted{addr: fmt.Sprintf("node-%d", i)}
		nodes[i] = scripts[i]
	}
	return NewPanel(nodes, agenda, watch, timeout), scripts, clk
}

var lock = node.Acquire("name", "value", time.Second)

func isDecided(r *Round) bool { return len(r.Ready()) > 0 }

func TestRoundIsWonByTheDecidingGrant(t *testing.T) {
	panel, nodes, _ := scene(t, 5)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	nodes[0].answer(yes)
	nodes[4].answer(yes)
	if isDecided(r) {
		t.Fatal("decided by two of five grants")
	}
	nodes[2].answer(yes)

	if !isDecided(r) || r.Outcome() != Won {
		t.Fatalf("decided %v, %v after three of five grants", isDecided(r), r.Outcome())
	}
}

func TestRoundIsLostByTheDecidingRefusal(t *testing.T) {
	panel, nodes, _ := scene(t, 5)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	nodes[0].answer(no)
	nodes[1].answer(down)
	if isDecided(r) {
		t.Fatal("decided although three may still grant")
	}
	nodes[2].answer(no)

	if !isDecided(r) || r.Outcome() != Lost {
		t.Fatalf("decided %v, %v after three of five are gone", isDecided(r), r.Outcome())
	}
}

func TestL4ASilentMinorityIsNotWaitedFor(t *testing.T) {
	panel, nodes, _ := scene(t, 5)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	for _, n := range nodes[:3] {
		n.answer(yes) // the clock does not move
	}

	if err := seam.Select(context.Background(), r.Ready()); err != nil || r.Outcome() != Won {
		t.Fatalf("%v, %v", r.Outcome(), err)
	}
}

func TestTimeoutFailsTheSilentNodes(t *testing.T) {
	panel, nodes, clk := scene(t, 3)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()
	nodes[1].answer(no)

	clk.Add(timeout)
	if err := seam.Select(context.Background(), r.Ready()); err != nil {
		t.Fatal(err)
	}

	if r.Outcome() != Lost || !r.Tally().Unreachable() {
		t.Errorf("%v, unreachable %v; want lost and unreachable", r.Outcome(), r.Tally().Unreachable())
	}
	for i, want := range []Vote{Failed, Refused, Failed} {
		b := r.Ballot(i)
		if b.Vote != want {
			t.Errorf("node %d: %v, want %v", i, b.Vote, want)
		}
		if late := want == Failed; late != (b.Reply.Err != nil && errors.Is(b.Reply.Err, node.ErrTimeout)) {
			t.Errorf("node %d: error %v", i, b.Reply.Err)
		}
	}
	nodes[0].answer(yes) // after the decision, and into a round that is read no more
	nodes[2].answer(yes)
}

// A process that was stopped itself finds the timeout due before it has read
// the answers that came meanwhile.
func TestATimeoutThatComesLateGivesTheAnswersAMoment(t *testing.T) {
	panel, nodes, clk := scene(t, 3)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	panel.agenda.Cancel(&r.alarm) // stopped: the timer did not run
	clk.Add(10 * timeout)
	r.Ring()
	if isDecided(r) {
		t.Fatal("decided before the answers could be read")
	}
	nodes[0].answer(yes)
	nodes[1].answer(yes)

	if !isDecided(r) || r.Outcome() != Won {
		t.Errorf("decided %v, %v", isDecided(r), r.Outcome())
	}
	nodes[2].answer(yes)
}

func TestATimeoutThatComesLateWaitsOnlyOnce(t *testing.T) {
	panel, _, clk := scene(t, 3)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()
	panel.agenda.Cancel(&r.alarm)
	clk.Add(10 * timeout)
	r.Ring()

	clk.Add(timeout / 4)
	if err := seam.Select(context.Background(), r.Ready()); err != nil || r.Outcome() != Lost {
		t.Errorf("%v, %v", r.Outcome(), err)
	}
}

// A wall clock that is set forward rings alarms that are not due if it is set
// back before they look. The round must not go without its timeout.
func TestATimeoutThatRingsEarlyRingsAgain(t *testing.T) {
	panel, _, clk := scene(t, 5)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	panel.agenda.Cancel(&r.alarm)
	r.Ring()
	if isDecided(r) {
		t.Fatal("decided before the timeout")
	}
	clk.Add(timeout)

	if !isDecided(r) {
		t.Error("not decided at the timeout")
	}
}

func TestLateVotesDoNotChangeTheOutcomeButAreReported(t *testing.T) {
	panel, nodes, _ := scene(t, 3)
	r := panel.Ask(Question{Command: lock, Judge: judge})
	nodes[0].answer(yes)
	nodes[1].answer(yes)

	nodes[2].answer(no)

	if b := r.Ballot(2); r.Outcome() != Won || b.Vote != Refused || !b.Late || r.Ballot(1).Late {
		t.Errorf("outcome %v, late vote %+v", r.Outcome(), b)
	}
	r.Free()
}

// observer writes down what a watched round tells.
type observer struct {
	decided []Outcome
	late    []int
}

func (o *observer) Decided(r *Round)               { o.decided = append(o.decided, r.Outcome()) }
func (o *observer) Late(r *Round, i int, b Ballot) { o.late = append(o.late, i) }

func TestWatcherIsToldOnceAndOfEveryLateVote(t *testing.T) {
	panel, nodes, _ := scene(t, 5)
	o := &observer{}
	panel.Ask(Question{Command: lock, Judge: judge, Watcher: o})

	for _, n := range nodes {
		n.answer(yes)
	}

	if len(o.decided) != 1 || o.decided[0] != Won {
		t.Errorf("decided: %v, want won once", o.decided)
	}
	if len(o.late) != 2 || o.late[0] != 3 || o.late[1] != 4 {
		t.Errorf("late votes of nodes %v, want 3 and 4", o.late)
	}
}

func TestNodesThatAnswerBeforeDoReturns(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply node.Reply
		want  Outcome
	}{{"grant", yes, Won}, {"refuse", no, Lost}, {"are down", down, Lost}} {
		t.Run(c.name, func(t *testing.T) {
			panel, nodes, _ := scene(t, 5)
			for _, n := range nodes {
				n.atone = &c.reply
			}
			r := panel.Ask(Question{Command: lock, Judge: judge})
			defer r.Free()
			if !isDecided(r) || r.Outcome() != c.want {
				t.Errorf("decided %v, %v; want %v", isDecided(r), r.Outcome(), c.want)
			}
		})
	}
}

func TestEveryNodeIsAskedEvenAfterTheDecision(t *testing.T) {
	panel, nodes, _ := scene(t, 5)
	for _, n := range nodes[:4] {
		n.atone = &down // lost before the last node is asked
	}
	r := panel.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	if len(nodes[4].open) != 1 {
		t.Error("the last node was not asked")
	}
}

func TestGateAloneDecidesAndItsGrantCounts(t *testing.T) {
	panel, nodes, _ := scene(t, 3)
	gate := panel.AskOne(1, lock, judge)
	nodes[1].answer(yes)
	if gate.Outcome() != Won {
		t.Fatalf("gate: %v", gate.Outcome())
	}
	gate.Free()

	r := panel.Ask(Question{Command: lock, Judge: judge, Granted: Only(1)})
	defer r.Free()
	if len(nodes[1].open) != 0 {
		t.Error("the gate was asked twice")
	}
	nodes[2].answer(yes)

	if !isDecided(r) || r.Outcome() != Won || r.Ballot(1).Vote != Granted {
		t.Errorf("decided %v, %v, gate %v", isDecided(r), r.Outcome(), r.Ballot(1).Vote)
	}
}

func TestTheOnlyNodeIsItsOwnGate(t *testing.T) {
	panel, _, _ := scene(t, 1)
	r := panel.Ask(Question{Command: lock, Judge: judge, Granted: Only(0)})
	defer r.Free()
	if !isDecided(r) || r.Outcome() != Won {
		t.Errorf("decided %v, %v", isDecided(r), r.Outcome())
	}
}

func TestOnlyThoseWhoRefusedAreAskedAgain(t *testing.T) {
	panel, nodes, _ := scene(t, 5)
	q := Question{Command: lock, Judge: judge}
	before := panel.Ask(q)
	nodes[0].answer(yes)
	nodes[1].answer(no)
	nodes[2].answer(no)
	nodes[3].answer(no)
	q = before.Again(q)
	before.Free()

	r := panel.Ask(q)
	defer r.Free()
	nodes[1].answer(yes)
	nodes[2].answer(yes)

	if !isDecided(r) || r.Outcome() != Won {
		t.Errorf("decided %v, %v; want won by one old and two new grants", isDecided(r), r.Outcome())
	}
	if len(nodes[0].open) != 0 || len(nodes[3].open) != 1 || len(nodes[4].open) != 1 {
		t.Errorf("open questions: %d %d %d", len(nodes[0].open), len(nodes[3].open), len(nodes[4].open))
	}
	nodes[4].answer(no) // to the first round
}

// A grant that arrives while it is decided who is asked again: a node that stores
// the value would refuse it, count as one that never had it, and be left with it
// until its TTL ends (L3).
func TestL3_a_late_grant_is_never_asked_again(t *testing.T) {
	panel, nodes, _ := scene(t, 5)
	for range 10_000 {
		q := Question{Command: lock, Judge: judge}
		r := panel.Ask(q)
		nodes[0].answer(yes)
		for i := 1; i <= 3; i++ {
			nodes[i].answer(no)
		}
		answered := make(chan struct{})
		go func() {
			nodes[4].answer(yes)
			close(answered)
		}()

		q = r.Again(q)

		<-answered
		r.Free()
		if got := panel.all() &^ q.Granted &^ q.Absent; got != Only(1)|Only(2)|Only(3) {
			t.Fatalf("asked again: %b, want 1110", got)
		}
	}
}

func TestTimeoutOfOneNodeBlamesOnlyThatOne(t *testing.T) {
	panel, _, clk := scene(t, 3)
	r := panel.AskOne(1, lock, judge)
	defer r.Free()

	clk.Add(timeout)
	if err := seam.Select(context.Background(), r.Ready()); err != nil {
		t.Fatal(err)
	}

	if r.Ballot(0).Vote != Absent || r.Ballot(1).Vote != Failed || r.Ballot(2).Vote != Absent {
		t.Errorf("votes %v %v %v", r.Ballot(0).Vote, r.Ballot(1).Vote, r.Ballot(2).Vote)
	}
}

func TestSurveyHearsEverybody(t *testing.T) {
	panel, nodes, _ := scene(t, 3)
	r := panel.Survey(lock)
	defer r.Free()

	nodes[0].answer(yes)
	nodes[1].answer(yes)
	if isDecided(r) {
		t.Fatal("over before the last node was heard")
	}
	nodes[2].answer(down)

	if !isDecided(r) || r.Ballot(2).Vote != Failed {
		t.Errorf("decided %v, last vote %v", isDecided(r), r.Ballot(2).Vote)
	}
}

// A round that its owner gave up before the decision is used again only when
// nobody can answer it any more, and starts its next life without a decision.
func TestAbandonedRoundComesBackClean(t *testing.T) {
	panel, nodes, _ := scene(t, 1)
	given := panel.Ask(Question{Command: lock, Judge: judge})
	given.Free()
	other := panel.Ask(Question{Command: lock, Judge: judge})
	if other == given {
		t.Fatal("reused while an answer was under way")
	}
	other.Free()
	nodes[0].answer(yes)
	nodes[0].answer(yes)

	for range 10 { // whichever round the pool hands out
		r := panel.Ask(Question{Command: lock, Judge: judge})
		if isDecided(r) || r.Outcome() != Open {
			t.Fatalf("a fresh round is decided: %v, %v", isDecided(r), r.Outcome())
		}
		nodes[0].answer(no)
		if r.Outcome() != Lost {
			t.Fatalf("%v, want lost", r.Outcome())
		}
		r.Free()
	}
}

// Answers from many goroutines, timeouts and owners that give up: each round is
// decided exactly once, and no vote lands in another round.
func TestRoundsUnderConcurrency(t *testing.T) {
	clk := clock.New()
	watch := drift.NewStopwatch(clk)
	agenda := drift.NewAgenda(watch)
	defer agenda.Close()
	nodes := make([]node.Node, 5)
	for i := range nodes {
		nodes[i] = &echo{addr: fmt.Sprint(i)}
	}
	panel := NewPanel(nodes, agenda, watch, time.Millisecond)
	granted := node.Acquire("name", "yes", time.Second)
	refused := node.Acquire("name", "no", time.Second)

	var wg sync.WaitGroup
	for i := range 8 {
		cmd, want := granted, Won
		if i%2 == 1 {
			cmd, want = refused, Lost
		}
		wg.Go(func() {
			for range 500 {
				r := panel.Ask(Question{Command: cmd, Judge: judge})
				seam.Select(context.Background(), r.Ready())
				if got := r.Outcome(); got != want && !r.Tally().Unreachable() {
					t.Errorf("%v, want %v", got, want)
				}
				r.Free()
			}
		})
	}
	wg.Wait()
	for _, n := range nodes {
		n.(*echo).wg.Wait()
	}
}

// echo answers from a goroutine of its own with what the value says.
type echo struct {
	addr string
	wg   sync.WaitGroup
}

func (e *echo) Addr() string { return e.addr }

func (e *echo) Do(cmd *node.Command, done func(node.Reply)) {
	reply := no
	if cmd.Args[0] == "yes" {
		reply = yes
	}
	e.wg.Go(func() { done(reply) })
}

func (e *echo) Subscribe(string, func()) func() { return func() {} }
func (e *echo) Close() error                    { return nil }
