package work

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// campaigning is the workload of an Election. Clients campaign, lead and observe in turn. At
// most one leads, and has a token of its own, as with every fenced lock. An observer sees the
// leaders in the order of their tokens, and the words of each leader in the order in which it
// says them, each word once. Some clients look so often that they see a leader while its
// masters still have to agree on its token.
func campaigning() func(p *promises.Caller, c *redlock.Client) {
	said := &terms{words: map[uint64][]string{}, tokens: map[string]uint64{}, lapses: map[uint64]int{}, early: map[string]uint64{}, sure: map[uint64]sure{}}
	return func(p *promises.Caller, c *redlock.Client) {
		e, words := c.Election("boss"), 0
		said.begin(p)
		dice := world.NewDice(p.Scene.Schedule.Seed, "handing", p.Number, int(p.Host.Life))
		for !p.Scene.Healed {
			switch n := p.Client.Dice.Below(10); {
			case n < 6:
				said.campaign(p, dice, e, &words)
				p.Sleep(context.Background(), p.Client.Dice.Between(0, time.Second))
			case n < 8:
				said.observe(p, e)
			default:
				said.look(p, e)
			}
			if said.on && dice.Chance(300) {
				said.ask(p, c)
			}
		}
	}
}

// terms are the words of the leaders of one schedule.
type terms struct {
	words  map[uint64][]string // by token, in order
	tokens map[string]uint64   // by word: of the lease of who said it
	lapses map[uint64]int      // by token: of all masters when the leader was told that it leads
	early  map[string]uint64   // the highest token with which a word was seen before its leader knew that it leads
	sure   map[uint64]sure     // by token
	handing
}

// sure is the last word of a leader that a majority has confirmed.
type sure struct {
	place  int // among its words
	lapses int // of all masters then: a majority may forget it
}

// campaign leads for a while, and says unique words: the name of the caller and a number that
// rises.
func (said *terms) campaign(p *promises.Caller, handed *world.Dice, e *redlock.Election, words *int) {
	dice := p.Client.Dice
	ctx, cancel := p.Clock().WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p.Scene.Stats.Calls++
	over := said.campaigns(p)
	lease, err := e.Campaign(ctx, word(p, words))
	if err != nil {
		over()
		return
	}
	letGo := p.Holding(lease)
	said.leads(p)
	said.lapses[lease.Token()] = p.Scene.Lapses()
	over()
	l := said.listens(p, handed, lease)
	said.say(p, lease, numbered(p, *words))
	for range dice.Below(4) {
		p.Sleep(lease.Context(), dice.Between(0, 500*time.Millisecond))
		next := word(p, words)
		said.say(p, lease, next)
		if e.Proclaim(ctx, lease, next) == nil { // or others may hear of it or not
			said.sure[lease.Token()] = sure{len(said.words[lease.Token()]) - 1, p.Scene.Lapses()}
		}
		if l.asked(p) && handed.Chance(500) {
			break // it heeds the request
		}
	}
	for l.ch != nil && lease.Valid() && handed.Chance(700) {
		p.Sleep(lease.Context(), min(time.Second, p.Scene.Config.TTL/4))
		if l.asked(p) {
			break
		}
	}
	if said.on && handed.Chance(400) {
		said.transfer(p, handed, e, lease)
	}
	letGo()
	lease.Unlock(context.Background())
}

func (said *terms) say(p *promises.Caller, l *redlock.Lease, word string) {
	token := l.Token()
	said.words[token] = append(said.words[token], word)
	said.tokens[word] = token
	p.Check(tally.LeaderSaid, said.early[word] <= token, "%q was seen with the token %d, and is said with the token %d", word, said.early[word], token)
}

// word returns a word that no leader has said yet.
func word(p *promises.Caller, words *int) string {
	*words++
	return numbered(p, *words)
}

func numbered(p *promises.Caller, n int) string {
	return p.Name() + " " + strconv.Itoa(int(p.Host.Life)) + "." + strconv.Itoa(n)
}

// look asks for the leader again and again, also while the masters are about to agree on its
// token. An observer looks only when it is notified, which is later.
func (said *terms) look(p *promises.Caller, e *redlock.Election) {
	dice, every := p.Client.Dice, p.Client.Dice.Spread(200*time.Microsecond, 20*time.Millisecond)
	for range dice.Below(50) {
		if l, err := e.Leader(context.Background()); err == nil {
			said.sees(p, l)
		}
		if p.Sleep(context.Background(), every); p.Scene.Healed {
			return
		}
	}
}

// sees checks a leader that a client sees: its token is that of who says its word, or lower
// until the first renewal. A master that loses its memory while a leader leads may count from a
// higher number. It returns the token of who says the word, and zero as long as that client has not
// been told that it leads: the token that is seen may be that of an earlier leader.
func (said *terms) sees(p *promises.Caller, l redlock.Leader) uint64 {
	p.Agreed(l)
	p.Check(tally.LeaderSaid, l.Token != 0, "%s sees %+v, which has no token", p.Name(), l)
	token, known := said.tokens[l.Value]
	if !known {
		said.early[l.Value] = max(said.early[l.Value], l.Token)
		return 0
	}
	forgotten := said.lapses[token] != p.Scene.Lapses()
	p.Check(tally.LeaderSaid, forgotten || l.Token <= token, "%s sees %+v, said with the token %d", p.Name(), l, token)
	return token
}

// observe watches for a while. Another Observe begins anew: it may see what a leader
// said before, if the last word is known to a minority, but not from before the last one
// that a majority had confirmed.
func (said *terms) observe(p *promises.Caller, e *redlock.Election) {
	ctx, cancel := p.Clock().WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	last, known := redlock.Leader{}, maps.Clone(said.sure)
	for l := range e.Observe(ctx) {
		back := l.Token < last.Token || l.Token == last.Token && l.Number <= last.Number && last.Value != ""
		p.Check(tally.LeadersInOrder, !back, "%s sees %+v after %+v", p.Name(), l, last)
		token := said.sees(p, l)
		if words := said.words[token]; len(words) > 0 {
			floor := known[token]
			forgotten := floor.lapses != p.Scene.Lapses()
			p.Check(tally.LeadersInOrder, forgotten || slices.Index(words, l.Value) >= floor.place, "%s sees %+v, and %q was confirmed before", p.Name(), l, words[floor.place])
		}
		last = l
	}
}
