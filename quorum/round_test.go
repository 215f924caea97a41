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
	"github.com/quorumlock/quorumlock/node/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = 50 * time.Millisecond

// scripted is a node that answers when the test says so.
type scripted struct {
	addr  string
	atone *wire.Reply // answer before Do returns

	mu   sync.Mutex
	open []func(wire.Reply)
}

func (s *scripted) Addr() string { return s.addr }

func (s *scripted) Do(cmd *wire.Command, done func(wire.Reply)) {
	if s.atone != nil {
		done(*s.atone)
		return
	}
	s.mu.Lock()
	s.open = append(s.open, done)
	s.mu.Unlock()
}

// answer gives the oldest unanswered command its reply.
func (s *scripted) answer(r wire.Reply) {
	s.mu.Lock()
	done := s.open[0]
	s.open = s.open[1:]
	s.mu.Unlock()
	done(r)
}

func (s *scripted) Subscribe(string, node.Listener) func() { return func() {} }
func (s *scripted) Close() error                           { return nil }

var (
	yes  = wire.Reply{Value: "OK"}
	no   = wire.Reply{}
	down = wire.Reply{Err: &wire.Error{Err: node.ErrDown}}
)

// judging makes a Judge of a function.
type judging func(wire.Reply) Vote

func (j judging) Judge(_ wire.Op, r wire.Reply) Vote { return j(r) }

var judge = judging(func(r wire.Reply) Vote {
	if r.Value == "OK" {
		return Granted
	}
	return Refused
})

// set up n scripted nodes under a mocked clock.
func scene(t *testing.T, n int) (*Members, []*scripted, *clock.Mock) {
	clk := clock.NewMock()
	watch := drift.NewStopwatch(clk)
	timers := drift.NewTimers(watch)
	t.Cleanup(timers.Close)
	nodes := make([]node.Node, n)
	scripts := make([]*scripted, n)
	for i := range nodes {
		scripts[i] = &scripted{addr: fmt.Sprintf("node-%d", i)}
		nodes[i] = scripts[i]
	}
	return NewMembers(nodes, Size(len(nodes)), timers, watch, timeout), scripts, clk
}

var lock = wire.Acquire("name", "value", time.Second)

func isDecided(r *Round) bool { return len(r.Ready()) > 0 }

func TestRound_is_won_by_the_deciding_grant(t *testing.T) {
	members, nodes, _ := scene(t, 5)
	r := members.Ask(Question{Command: lock, Judge: judge})
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

func TestA_ballot_says_how_long_its_answer_took(t *testing.T) {
	members, nodes, clk := scene(t, 7)
	members.TimeAnswers()
	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	clk.Add(3 * time.Millisecond)
	nodes[0].answer(yes)
	nodes[1].answer(down)
	clk.Add(4 * time.Millisecond)
	nodes[2].answer(wire.Reply{Err: &wire.Error{Err: &wire.ServerError{Code: "OOM"}}})
	nodes[5].answer(wire.Reply{Err: &wire.Error{Err: &wire.ReplyError{Value: "OK?"}}}) // something, if not what was asked
	clk.Add(timeout)
	nodes[3].answer(no)

	want := []time.Duration{3 * time.Millisecond, 0, 7 * time.Millisecond, 7*time.Millisecond + timeout, 0, 7 * time.Millisecond, 0}
	for i, b := range r.Ballots(nil) {
		if b.After != want[i] {
			t.Errorf("node %d, %v: after %v, want %v", i, b.Vote, b.After, want[i])
		}
	}
	if !r.Ballot(3).Late || r.Ballot(4).Late {
		t.Error("the answer after the timeout is late, and none is not")
	}
	nodes[4].answer(yes)
	nodes[6].answer(yes)
}

// readings is a clock that counts how often it is read.
type readings struct {
	clock.Clock
	n int
}

func (c *readings) Now() time.Time { c.n++; return c.Clock.Now() }

func TestNo_clock_is_read_for_an_answer_that_nobody_times(t *testing.T) {
	for _, timed := range []bool{false, true} {
		clk := &readings{Clock: clock.NewMock()}
		watch := drift.NewStopwatch(clk)
		timers := drift.NewTimers(watch)
		defer timers.Close()
		master := &scripted{addr: "master"}
		members := NewMembers([]node.Node{master}, 1, timers, watch, timeout)
		if timed {
			members.TimeAnswers()
		}
		r := members.Ask(Question{Command: lock, Judge: judge})
		before := clk.n

		master.answer(yes)

		if read := clk.n > before; read != timed {
			t.Errorf("timed %v: %d readings", timed, clk.n-before)
		}
		r.Free()
	}
}

func TestRound_is_lost_by_the_deciding_refusal(t *testing.T) {
	members, nodes, _ := scene(t, 5)
	r := members.Ask(Question{Command: lock, Judge: judge})
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

func TestL4_a_silent_minority_is_not_waited_for(t *testing.T) {
	members, nodes, _ := scene(t, 5)
	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	for _, n := range nodes[:3] {
		n.answer(yes) // the clock does not move
	}

	if err := seam.Select(context.Background(), r.Ready()); err != nil || r.Outcome() != Won {
		t.Fatalf("%v, %v", r.Outcome(), err)
	}
}

func TestTimeout_fails_the_silent_nodes(t *testing.T) {
	members, nodes, clk := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge})
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
func TestA_timeout_that_comes_late_gives_the_answers_a_moment(t *testing.T) {
	members, nodes, clk := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	members.timers.Cancel(&r.timer) // stopped: the timer did not run
	clk.Add(10 * timeout)
	r.Fire()
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

// So it does in every life of the round.
func TestA_round_that_is_used_again_gives_the_answers_a_moment(t *testing.T) {
	members, _, clk := scene(t, 1)
	r := newRound(members)
	for range 2 {
		r.begin(Question{Command: lock, Judge: judge}, NewTally(1))
		members.timers.Cancel(&r.timer) // stopped: the timer did not run
		clk.Add(10 * timeout)
		r.Fire()
		if isDecided(r) {
			t.Fatal("decided before the answer could be read")
		}
		r.answer(0, yes)
	}
}

func TestA_decided_round_leaves_no_timer(t *testing.T) {
	members, nodes, _ := scene(t, 1)
	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()
	nodes[0].answer(yes)

	if n := members.timers.Len(); n != 0 {
		t.Errorf("%d timers are pending", n)
	}
}

func TestA_watched_round_has_no_holder_when_all_have_answered(t *testing.T) {
	members, nodes, _ := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge, Watcher: &observer{}})
	for _, n := range nodes {
		n.answer(yes)
	}

	if n := r.users.Load(); n != 0 {
		t.Errorf("%d users are left", n)
	}
}

func TestA_timeout_that_comes_late_waits_only_once(t *testing.T) {
	members, _, clk := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()
	members.timers.Cancel(&r.timer)
	clk.Add(10 * timeout)
	r.Fire()

	clk.Add(timeout / 4)
	if err := seam.Select(context.Background(), r.Ready()); err != nil || r.Outcome() != Lost {
		t.Errorf("%v, %v", r.Outcome(), err)
	}
}

// A wall clock that is set forward fires timers that are not due if it is set
// back before they look. The round must not go without its timeout.
func TestA_timeout_that_rings_early_rings_again(t *testing.T) {
	members, nodes, clk := scene(t, 5)
	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()
	nodes[0].answer(yes)
	nodes[1].answer(no)
	nodes[2].answer(down)

	members.timers.Cancel(&r.timer)
	r.Fire()
	if isDecided(r) {
		t.Fatal("decided before the timeout")
	}
	clk.Add(timeout)

	if !isDecided(r) {
		t.Error("not decided at the timeout")
	}
}

func TestLate_votes_do_not_change_the_outcome_but_are_reported(t *testing.T) {
	members, nodes, _ := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge})
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

func TestWatcher_is_told_once_and_of_every_late_vote(t *testing.T) {
	members, nodes, _ := scene(t, 5)
	o := &observer{}
	members.Ask(Question{Command: lock, Judge: judge, Watcher: o})

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

func TestNodes_that_answer_before_do_returns(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply wire.Reply
		want  Outcome
	}{{"grant", yes, Won}, {"refuse", no, Lost}, {"are down", down, Lost}} {
		t.Run(c.name, func(t *testing.T) {
			members, nodes, _ := scene(t, 5)
			for _, n := range nodes {
				n.atone = &c.reply
			}
			r := members.Ask(Question{Command: lock, Judge: judge})
			defer r.Free()
			if !isDecided(r) || r.Outcome() != c.want {
				t.Errorf("decided %v, %v; want %v", isDecided(r), r.Outcome(), c.want)
			}
		})
	}
}

func TestEvery_node_is_asked_even_after_the_decision(t *testing.T) {
	members, nodes, _ := scene(t, 5)
	for _, n := range nodes[:4] {
		n.atone = &down // lost before the last node is asked
	}
	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()

	if len(nodes[4].open) != 1 {
		t.Error("the last node was not asked")
	}
}

func TestA_node_that_granted_before_counts_and_is_not_asked(t *testing.T) {
	members, nodes, _ := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge, Granted: Only(1)})
	defer r.Free()
	if len(nodes[1].open) != 0 {
		t.Error("asked twice")
	}
	nodes[2].answer(yes)

	if !isDecided(r) || r.Outcome() != Won || r.Ballot(1).Vote != Granted {
		t.Errorf("decided %v, %v, vote %v", isDecided(r), r.Outcome(), r.Ballot(1).Vote)
	}
}

func TestGrants_from_before_may_decide_at_once(t *testing.T) {
	members, _, _ := scene(t, 1)
	r := members.Ask(Question{Command: lock, Judge: judge, Granted: Only(0)})
	defer r.Free()
	if !isDecided(r) || r.Outcome() != Won {
		t.Errorf("decided %v, %v", isDecided(r), r.Outcome())
	}
}

func TestTimeout_of_one_node_blames_only_that_one(t *testing.T) {
	members, _, clk := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge, Granted: Only(0), Absent: Only(2)})
	defer r.Free()

	clk.Add(timeout)
	if err := seam.Select(context.Background(), r.Ready()); err != nil {
		t.Fatal(err)
	}

	if r.Ballot(0).Vote != Granted || r.Ballot(1).Vote != Failed || r.Ballot(2).Vote != Absent {
		t.Errorf("votes %v %v %v", r.Ballot(0).Vote, r.Ballot(1).Vote, r.Ballot(2).Vote)
	}
}

func TestSurvey_hears_everybody(t *testing.T) {
	members, nodes, _ := scene(t, 3)
	r := members.Survey(lock, nil)
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

// The timer has fired, and before its handler runs the vote is decided.
func TestA_timeout_that_fires_as_the_vote_is_decided_decides_nothing(t *testing.T) {
	members, nodes, clk := scene(t, 3)
	o := &observer{}
	r := members.Ask(Question{Command: lock, Judge: judge, Watcher: o})
	members.timers.Cancel(&r.timer) // taken off the heap, about to call Fire
	clk.Add(timeout)
	nodes[0].answer(yes)
	nodes[1].answer(yes)
	r.Fire()
	nodes[2].answer(yes)

	if len(o.decided) != 1 || o.decided[0] != Won {
		t.Errorf("decided: %v, want won once", o.decided)
	}
	if len(o.late) != 1 {
		t.Errorf("late votes of nodes %v, want one", o.late)
	}
}

// A round that its owner gave up before the decision is used again only when
// nobody can answer it any more, and starts its next life without a decision.
func TestAbandoned_round_comes_back_clean(t *testing.T) {
	members, nodes, _ := scene(t, 1)
	given := members.Ask(Question{Command: lock, Judge: judge})
	given.Free()
	other := members.Ask(Question{Command: lock, Judge: judge})
	if other == given {
		t.Fatal("reused while an answer was under way")
	}
	other.Free()
	nodes[0].answer(yes)
	nodes[0].answer(yes)

	for range 10 { // whichever round the pool hands out
		r := members.Ask(Question{Command: lock, Judge: judge})
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

// The timer has fired, but its handler has not come to run yet. If the round
// began its next life meanwhile, the handler would tell the next owner of a
// decision that is not his.
func TestA_round_is_not_used_again_while_its_timer_fires(t *testing.T) {
	members, nodes, _ := scene(t, 1)
	fired := members.Ask(Question{Command: lock, Judge: judge})
	members.timers.Cancel(&fired.timer) // taken off the heap, about to call Fire
	nodes[0].answer(yes)
	fired.Free()

	for range 10 { // whichever round the pool hands out
		r := members.Ask(Question{Command: lock, Judge: judge})
		if r == fired {
			t.Fatal("used again")
		}
		nodes[0].answer(yes)
		r.Free()
	}
	fired.Fire()

	r := members.Ask(Question{Command: lock, Judge: judge})
	defer r.Free()
	if isDecided(r) || r.Outcome() != Open {
		t.Errorf("a fresh round is decided: %v, %v", isDecided(r), r.Outcome())
	}
	nodes[0].answer(yes)
}

func TestGrants_that_were_given_before_can_decide_a_watched_round(t *testing.T) {
	members, nodes, _ := scene(t, 3)
	o := &observer{}

	members.Ask(Question{Command: lock, Judge: judge, Watcher: o, Granted: Only(0) | Only(1)})
	nodes[2].answer(yes)

	if len(o.decided) != 1 || o.decided[0] != Won || len(o.late) != 1 {
		t.Errorf("decided %v, late %v; want won once, and one late vote", o.decided, o.late)
	}
}

func TestA_question_may_wait_longer_than_the_node_timeout(t *testing.T) {
	members, nodes, clk := scene(t, 3)
	r := members.Ask(Question{Command: lock, Judge: judge, Timeout: 10 * timeout})
	defer r.Free()

	clk.Add(9 * timeout)
	if isDecided(r) {
		t.Fatal("decided before its own timeout")
	}
	nodes[0].answer(yes)
	nodes[1].answer(yes)

	if !isDecided(r) || r.Outcome() != Won {
		t.Errorf("decided %v, %v", isDecided(r), r.Outcome())
	}
	nodes[2].answer(yes)
}

// L82: where a quorum has answered, and has not won the round, a node that hangs is waited for
// until half of the timeout has passed, or half of what is left then, and so on.
func TestL82_a_question_is_given_up_where_asking_again_may_win(t *testing.T) {
	members, nodes, clk := scene(t, 3)
	for _, c := range []struct {
		timeout time.Duration
		second  wire.Reply
		after   time.Duration // when it comes
		ends    time.Duration // the round
	}{
		{16 * timeout, down, 0, 8 * timeout},
		{16 * timeout, no, 7 * timeout, 8 * timeout},
		{16 * timeout, down, 8*timeout + 1, 12 * timeout},
		{16 * timeout, no, 13 * timeout, 14 * timeout},
		{16 * timeout, down, 15*timeout + 1, 16 * timeout},
		{timeout + timeout/2, down, 0, timeout},
		{timeout, down, 0, timeout},
	} {
		r := members.Ask(Question{Command: lock, Judge: judge, Timeout: c.timeout})
		nodes[0].answer(yes)
		clk.Add(c.after)
		nodes[1].answer(c.second)
		if clk.Add(c.ends - c.after - 1); isDecided(r) {
			t.Errorf("%+v: decided before", c)
		}
		if clk.Add(1); !isDecided(r) || r.Outcome() != Lost {
			t.Errorf("%+v: %v", c, r.Outcome())
		}
		r.Free()
		nodes[2].answer(yes)
	}
}

func TestAn_answer_that_is_none_fails_and_says_what_came(t *testing.T) {
	members, nodes, _ := scene(t, 1)
	fussy := judging(func(wire.Reply) Vote { return Failed })
	r := members.Ask(Question{Command: lock, Judge: fussy})
	defer r.Free()

	nodes[0].answer(wire.Reply{Value: "QUEUED"})

	b := r.Ballot(0)
	want := `node-0: acquire: unexpected answer: status "QUEUED"`
	if b.Vote != Failed || b.Reply.Err == nil || b.Reply.Err.Error() != want {
		t.Errorf("%v, %v; want %v, %s", b.Vote, b.Reply.Err, Failed, want)
	}
}

// It has done what it was asked, so that only the error can say why its vote does not count.
func TestAn_answer_of_a_master_that_lost_its_memory_lately_fails_and_says_so(t *testing.T) {
	members, nodes, _ := scene(t, 1)
	fussy := judging(func(r wire.Reply) Vote {
		if r.Young {
			return Failed
		}
		return Granted
	})
	r := members.Ask(Question{Command: lock, Judge: fussy})
	defer r.Free()

	nodes[0].answer(wire.Reply{Value: "OK", Young: true})

	b := r.Ballot(0)
	if b.Vote != Failed || b.Reply.Err == nil || b.Reply.Err.Node != "node-0" || !errors.Is(b.Reply.Err, node.ErrYoung) {
		t.Errorf("%v, %v; want %v of node-0, %v", b.Vote, b.Reply.Err, Failed, node.ErrYoung)
	}
}

// Answers from many goroutines, timeouts and owners that give up: each round is
// decided exactly once, and no vote lands in another round.
func TestRounds_under_concurrency(t *testing.T) {
	clk := clock.New()
	watch := drift.NewStopwatch(clk)
	timers := drift.NewTimers(watch)
	defer timers.Close()
	nodes := make([]node.Node, 5)
	for i := range nodes {
		nodes[i] = &echo{addr: fmt.Sprint(i)}
	}
	members := NewMembers(nodes, Size(len(nodes)), timers, watch, time.Millisecond)
	granted := wire.Acquire("name", "yes", time.Second)
	refused := wire.Acquire("name", "no", time.Second)

	var wg sync.WaitGroup
	for i := range 8 {
		cmd, want := granted, Won
		if i%2 == 1 {
			cmd, want = refused, Lost
		}
		wg.Go(func() {
			for range 500 {
				r := members.Ask(Question{Command: cmd, Judge: judge})
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

func (e *echo) Do(cmd *wire.Command, done func(wire.Reply)) {
	reply := no
	if cmd.Args[0] == "yes" {
		reply = yes
	}
	e.wg.Go(func() { done(reply) })
}

func (e *echo) Subscribe(string, node.Listener) func() { return func() {} }
func (e *echo) Close() error                           { return nil }
