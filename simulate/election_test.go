package simulate

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// terms are what was said by the leaders of one schedule: by token, in order.
type terms map[uint64][]string

// campaign leads now and then, and says what tells it from all others: its name and a
// number that rises.
func (said terms) campaign(p *Process, e *redlock.Election, words *int) {
	dice := p.client.dice
	ctx, cancel := p.Clock().WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	*words++
	word := p.name + " " + strconv.Itoa(int(p.host.life)) + "." + strconv.Itoa(*words)
	lease, err := e.Campaign(ctx, word)
	if err != nil {
		return
	}
	letGo := p.Holding(lease)
	if words := said[lease.Token()]; len(words) > 0 {
		p.Fail("%s leads with the token %d, as did who said %q", p.name, lease.Token(), words)
	}
	said[lease.Token()] = append(said[lease.Token()], word)
	for range dice.below(4) {
		p.Sleep(lease.Context(), dice.between(0, 500*time.Millisecond))
		*words++
		next := p.name + " " + strconv.Itoa(int(p.host.life)) + "." + strconv.Itoa(*words)
		said[lease.Token()] = append(said[lease.Token()], next)
		e.Proclaim(ctx, lease, next) // others may hear of it or not
	}
	letGo()
	lease.Unlock(context.Background())
}

// watch observes for a while. Leaders come in the order of their tokens, and what each
// says in the order in which it says it, each word once.
func (said terms) watch(p *Process, e *redlock.Election, last *redlock.Leader) {
	ctx, cancel := p.Clock().WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	first := true
	for l := range e.Observe(ctx) {
		again := first && l.Token == last.Token && l.Number == last.Number
		first = false
		if l.Token < last.Token || l.Token == last.Token && l.Number <= last.Number && !again {
			p.Fail("%s sees %+v after %+v", p.name, l, *last)
		}
		if words := said[l.Token]; len(words) > 0 && !strings.Contains(strings.Join(words, "|")+"|", l.Value+"|") {
			p.Fail("%s sees %+v, which said %q", p.name, l, words)
		}
		*last = l
	}
}

// electionWorkload has three clients campaign and two watch.
func electionWorkload() func(p *Process, c *redlock.Client) {
	var all sync.Map
	return func(p *Process, c *redlock.Client) {
		said := *perTrial(&all, p, func() *terms { return &terms{} })
		e, last, words := c.Election("boss"), redlock.Leader{}, 0
		for !p.Over() {
			if p.Client() < 3 {
				said.campaign(p, e, &words)
				p.Sleep(context.Background(), p.client.dice.between(0, time.Second))
			} else {
				said.watch(p, e, &last)
			}
		}
	}
}

func TestOneLeadsAndObserversSeeEveryChangeInOrder(t *testing.T) {
	for name, faults := range map[string]Mix{"masters remember": Only(notForgetful...), "every fault": Assumed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(Config{Clients: 5, Seeds: 100 / share(), Duration: 20 * time.Second, Faults: faults}, electionWorkload())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Failures {
				t.Errorf("seed %d: %v", f.Seed, f.Violations)
			}
			if r.Stats.Acquisitions == 0 {
				t.Error("nobody ever led")
			}
		})
	}
}
