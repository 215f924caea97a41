package redlock

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
)

// What follows from what happens to a Cached lock. Callers are letters. The first that comes asks the
// masters.
func TestTenure(t *testing.T) {
	for name, story := range map[string][][2]string{
		"the lock rests in the process, and asks no master": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"},
			{"b comes", "b uses"}, {"done", ""}, {"b tries", "b uses"}, {"done", ""},
		},
		"callers are served in the order of their arrival": {
			{"a comes", "a asks"}, {"b comes", "b waits"}, {"acquired", "a uses"}, {"c comes", "c waits"}, {"d comes", "d waits"},
			{"done", "b uses"}, {"e comes", "e waits"}, {"done", "c uses"}, {"done", "d uses"}, {"done", "e uses"}, {"done", "timer"},
		},
		"who tries does not wait for others of the process": {
			{"a comes", "a asks"}, {"b tries", "b is refused, masters are asked"}, {"acquired", "a uses"}, {"b tries", "b is refused"}, {"done", "timer"}, {"b tries", "b uses"},
		},
		"who tries asks behind the release, but passes nobody": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"others wait", ""}, {"done", "leave to others"},
			{"b tries", "b waits"}, {"c tries", "c is refused"}, {"d comes", "d waits"}, {"released", "b asks"},
		},
		"when an ask fails the next caller asks": {
			{"a comes", "a asks"}, {"b comes", "b waits"}, {"refused", "b asks"}, {"c comes", "c waits"}, {"refused", "c asks"}, {"refused", "gone"},
		},
		"another process gets it at the end of a section": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"others wait", ""}, {"others wait", ""}, {"done", "leave to others"}, {"released", "gone"},
		},
		"another process gets immediately what rests": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"}, {"others wait", "leave to others"}, {"others wait", ""},
			{"a comes", "a waits"}, {"released", "a asks"},
		},
		"a message about an earlier lease means nothing": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"others waited", ""}, {"done", "timer"}, {"others waited", ""},
		},
		"who asked behind others gives it to them": {
			{"a comes", "a asks"}, {"b comes", "b waits"}, {"acquired behind others", "a uses"}, {"done", "b uses"}, {"done", "leave to others"},
		},
		"who may have asked before others looks": {
			{"a comes", "a asks"}, {"acquired by waiting", "a uses, renew"}, {"done", "timer"},
		},
		"a message that comes before the lease makes it look": {
			{"a comes", "a asks"}, {"others wait", ""}, {"acquired", "a uses, renew"}, {"others wait", ""}, {"done", "leave to others"}, {"released", "gone"},
			{"a comes", "a asks"}, {"acquired", "a uses"},
		},
		"a message that is missed before the lease does, too": {
			{"a comes", "a asks"}, {"missed", ""}, {"acquired", "a uses, renew"}, {"missed", "renew"}, {"done", "timer"}, {"missed", "renew"},
		},
		"a demand ends with the lease": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"others wait", ""}, {"lost", "a ends, gone"}, {"b comes", "b asks"}, {"acquired", "b uses"}, {"done", "timer"},
		},
		"callers pass it for 10ms while another process waits": {
			{"a comes", "a asks"}, {"b comes", "b waits"}, {"c comes", "c waits"}, {"acquired", "a uses"}, {"others wait", ""},
			{"9ms pass", ""}, {"done", "b uses"}, {"others wait", ""}, {"1ms passes", ""}, {"done", "leave to others"}, {"released", "c asks"},
		},
		"a lost lease ends its section, and the next caller asks": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"b comes", "b waits"}, {"lost", "b asks, a ends"}, {"done", ""}, {"acquired", "b uses"},
		},
		"a lease that is lost while it rests": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"}, {"lost", "gone"}, {"a comes", "a asks"},
		},
		"a lease that is lost before it is used": {
			{"a comes", "a asks"}, {"b comes", "b waits"}, {"acquired, lost", "b asks"}, {"acquired, lost", "gone"},
		},
		"an expired lease is not used again": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"}, {"expired", ""}, {"b tries", "b waits, release"}, {"released", "b asks"},
		},
		"an expired lease is not passed": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"b comes", "b waits"}, {"expired", ""}, {"done", "release"}, {"released", "b asks"},
		},
		"who gives up leaves the line": {
			{"a comes", "a asks"}, {"b comes", "b waits"}, {"c comes", "c waits"}, {"b leaves", "masters are asked"}, {"acquired", "a uses"},
			{"b comes", "b waits"}, {"b leaves", ""}, {"done", "c uses"},
		},
		"who gives up as it is served lets the next one have it": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"b comes", "b waits"}, {"c comes", "c waits"}, {"done", "b uses"}, {"b leaves", "drop"}, {"done", "c uses"},
		},
		"who gives up as it is to ask lets the next one ask": {
			{"a comes", "a asks"}, {"b comes", "b waits"}, {"c comes", "c waits"}, {"refused", "b asks"}, {"b leaves", "c asks"}, {"c leaves", "gone"},
		},
		"a lock that is not used is given back": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"}, {"1s passes", ""}, {"b comes", "b uses"}, {"8s pass", ""}, {"done", ""},
			{"1s passes", ""}, {"timer", "timer"}, {"9s pass", ""}, {"timer", "release"}, {"released", "gone"},
		},
		"the timer means nothing while the lock is used": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"}, {"b comes", "b uses"}, {"10s pass", ""}, {"timer", ""}, {"done", "timer"},
		},
		"the timer is set once": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"}, {"9s pass", ""}, {"b comes", "b uses"}, {"done", ""}, {"1s passes", ""}, {"timer", "timer"},
			{"b comes", "b uses"}, {"done", ""},
		},
		"the handle that used it last says for how long it may rest": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"done", "timer"}, {"s comes", "s uses"}, {"done", "timer"}, {"1s passes", ""}, {"b comes", "b uses"}, {"done", ""},
			{"timer", "timer"}, {"s comes", "s uses"}, {"done", "timer"}, {"1s passes", ""}, {"timer", "release"},
		},
		"the end of an earlier lease means nothing": {
			{"a comes", "a asks"}, {"acquired", "a uses"}, {"others wait", ""}, {"done", "leave to others"}, {"lost", ""}, {"b comes", "b waits"}, {"released", "b asks"}, {"lost", ""},
			{"acquired", "b uses"}, {"lost before", ""}, {"done", "timer"},
		},
		"a lock that rests is given back at the end": {
			{"a comes", "a asks"}, {"not needed", ""}, {"acquired", "a uses"}, {"not needed", ""}, {"done", "timer"}, {"not needed", "release"},
		},
	} {
		t.Run(name, func(t *testing.T) { tell(t, story) })
	}
}

// While another process waits, callers pass the lock 16 times.
func TestTenure_is_passed_within_the_process_16_times(t *testing.T) {
	story := [][2]string{{"a comes", "a asks"}, {"acquired", "a uses"}, {"others wait", ""}}
	for range mostPassed {
		story = append(story, [2]string{"b comes", "b waits"}, [2]string{"done", "b uses"})
	}
	tell(t, append(story, [][2]string{{"b comes", "b waits"}, {"done", "leave to others"}, {"released", "b asks"}}...))
}

// tell plays a story. After each event it compares what follows.
func tell(t *testing.T, story [][2]string) {
	mock := clock.NewMock()
	watch := drift.NewStopwatch(mock)
	p := player{t: &tenure{}, insiders: map[string]*insider{}}
	for i, line := range story {
		if d, err := time.ParseDuration(strings.Fields(line[0])[0]); err == nil {
			mock.Add(d)
			continue
		}
		if got := p.play(line[0], watch.Now()); got != line[1] {
			t.Fatalf("line %d: %s: %s; want %s", i+1, line[0], got, line[1])
		}
	}
}

// player does for a tenure what its callers and effects do.
type player struct {
	t        *tenure
	insiders map[string]*insider
	asker    *lock
	section  *Lease // the last one
	leases   int
	expired  bool
}

var happenings = map[string]tenureEvent{
	"comes": {kind: callerCame}, "tries": {kind: callerCame, tries: true}, "leaves": {kind: callerLeft},
	"acquired": {kind: leaseAcquired}, "acquired by waiting": {kind: leaseAcquired, others: perhaps},
	"acquired behind others": {kind: leaseAcquired, others: some}, "acquired, lost": {kind: leaseAcquired, cause: ErrLost},
	"refused": {kind: leaseRefused}, "done": {kind: sectionEnded}, "others wait": {kind: othersWait}, "others waited": {kind: othersWait, value: "another"},
	"missed": {kind: messagesMissed}, "lost": {kind: leaseEnded, cause: ErrLost}, "timer": {kind: timerFired},
	"lost before": {kind: leaseEnded, lease: &Lease{}}, "released": {kind: leaseReleased}, "not needed": {kind: nobodyNeeds},
}

func (p *player) play(happens string, now drift.Instant) (follows string) {
	who, does, _ := strings.Cut(happens, " ")
	if len(who) > 1 {
		who, does = "", happens
	}
	if does == "expired" {
		p.expired = true
		return ""
	}
	e, ok := happenings[does]
	if !ok {
		panic(happens)
	}
	e.now, e.expired, e.caller, e.section = now, p.expired, p.insiders[who], p.section
	idle := 10 * time.Second
	if who == "s" {
		idle = time.Second
	}
	e.lock = &lock{name: who, opt: lockOptions{cached: &idle}}
	switch {
	case e.kind == leaseAcquired:
		p.leases++
		e.lock, e.lease, p.expired = p.asker, &Lease{value: fmt.Sprintf("ann/nonce/C%d", p.leases)}, false
	case p.t.lease == nil:
		e.lease = cmp.Or(e.lease, &Lease{})
	default:
		e.lease, e.value = cmp.Or(e.lease, p.t.lease), cmp.Or(e.value, p.t.lease.value)
	}
	var did []string
	p.did(&e, p.t.step(&e), &did)
	p.check(&did)
	return strings.Join(did, ", ")
}

// check adds what breaks the invariant of a tenure.
func (p *player) check(did *[]string) {
	t := p.t
	for what, is := range map[string]bool{
		"a section":            (t.section != nil) != (t.state == used),
		"a lease":              (t.lease != nil) != (t.state == used || t.state == resting),
		"callers in line":      len(t.line) > 0 && t.state != sought && t.state != used && t.state != leaving,
		"doubt without an ask": t.doubt && t.state != sought,
	} {
		if is {
			*did = append(*did, "BROKEN: "+what)
		}
	}
}

// did says what follows, and does it.
func (p *player) did(e *tenureEvent, fx tenureEffects, did *[]string) {
	say := func(when bool, what string) {
		if when {
			*did = append(*did, what)
		}
	}
	l := e.lock
	if fx.wakes != nil {
		l = fx.wakes.lock
	}
	gives := p.t.state == used && p.t.section == nil
	if gives {
		p.section = &Lease{lock: l}
		p.t.section = p.section
	}
	if fx.joined != nil {
		p.insiders[l.name] = fx.joined
	}
	if fx.asks || fx.wakes != nil && !gives {
		p.asker = l
		say(true, l.name+" asks")
	}
	say(gives, l.name+" uses")
	say(fx.joined != nil, l.name+" waits")
	say(e.kind == callerCame && !gives && !fx.asks && fx.joined == nil, l.name+" is refused")
	if fx.wakes != nil && gives {
		fx.wakes.lease = p.section
	}
	say(fx.asked, "masters are asked")
	say(fx.drops != nil, "drop")
	if fx.ends != nil {
		say(true, fx.ends.lock.name+" ends")
	}
	say(fx.rest > 0, "timer")
	say(fx.renew != nil, "renew")
	say(fx.release != nil && !fx.queue, "release")
	say(fx.release != nil && fx.queue, "leave to others")
	say(p.t.state == away, "gone")
}
