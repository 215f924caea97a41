package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// pauses is a mocked clock that tells which pauses were asked for.
type pauses struct {
	*clock.Mock
	mu  sync.Mutex
	all []time.Duration
}

func newPauses() *pauses { return &pauses{Mock: clock.NewMock()} }

func (p *pauses) AfterFunc(d time.Duration, f func()) *clock.Timer {
	timer := p.Mock.AfterFunc(d, f)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, d)
	return timer
}

// between returns how many pauses there were from least to most.
func (p *pauses) between(least, most time.Duration) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.all {
		if d >= least && d <= most {
			n++
		}
	}
	return n
}

// forget has between count from now on.
func (p *pauses) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = nil
}

// A login of a minute is renewed after 45 to 52.5 seconds; the pause is shorter if the clock is
// moved on between two looks at it.
const (
	lasts = time.Minute
	early = 30 * time.Second
	late  = 52500 * time.Millisecond
)

// slow has no timer that a test of logins could meet.
func slow(p *pauses, ask func(context.Context, string) (Credentials, error)) Config {
	return Config{Clock: p, Heartbeat: 100 * time.Hour, ConnectTimeout: 50 * time.Hour, MaxAge: 200 * time.Hour, Linger: 100 * time.Hour, Credentials: ask}
}

// connections returns the ids of the clients of a server, without the one that asks.
func connections(t testing.TB, s *redistest.Server) (ids []string) {
	t.Helper()
	for _, line := range strings.Split(string(do(t, s, "CLIENT", "LIST").([]byte)), "\n") {
		if id := regexp.MustCompile(`^id=(\d+)`).FindStringSubmatch(line); id != nil && !strings.Contains(line, "cmd=client") {
			ids = append(ids, id[1])
		}
	}
	return ids
}

func TestReal_login_is_renewed_before_it_expires_on_the_living_connections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.User("ann", "pw"))
	p := newPauses()
	var asked atomic.Int64
	m := connect(t, s.Addr(), slow(p, func(context.Context, string) (Credentials, error) {
		asked.Add(1)
		return Credentials{"ann", "pw", p.Now().Add(lasts)}, nil
	}))
	heard := listenTo(t, m, "ch")
	for range 3 {
		eventually(t, "both connections wait to renew their login", func() bool { return p.between(early, late) == 2 })
		p.forget()
		ids, before := connections(t, s), asked.Load()

		p.Add(late)

		heard.woken(t, "the confirmation, since a message may have been lost")
		eventually(t, "both have logged in again", func() bool { return p.between(early, late) == 2 })
		if n := asked.Load() - before; n != 2 {
			t.Errorf("asked for credentials %d times", n)
		}
		if now := connections(t, s); !slices.Equal(ids, now) {
			t.Errorf("connections %v have become %v", ids, now)
		}
		do(t, s, "PUBLISH", "ch", "")
		heard.woken(t, "a message")
		wantValue(t, ask(t, m, get("k")), nil)
	}
}

func TestReal_login_that_is_not_renewed_leaves_the_connections_as_they_are(t *testing.T) {
	vault := errors.New("the vault is sealed")
	for name, failure := range map[string]struct {
		Credentials
		err  error
		says string
	}{
		"refused":  {Credentials{User: "ann", Password: "wrong"}, nil, "WRONGPASS"},
		"no token": {Credentials{}, vault, "the vault is sealed"},
		"expired":  {Credentials{"ann", "pw", time.Unix(0, 0)}, nil, "Expires 1970-01-01"},
		"nothing":  {Credentials{User: "ann"}, nil, "Password: must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.User("ann", "pw"))
			p, log := newPauses(), &journal{}
			var fails atomic.Bool
			config := slow(p, func(context.Context, string) (Credentials, error) {
				if fails.Load() {
					return failure.Credentials, failure.err
				}
				return Credentials{"ann", "pw", p.Now().Add(lasts)}, nil
			})
			config.Logger = slog.New(log)
			m := connect(t, s.Addr(), config)
			heard := listenTo(t, m, "ch")
			eventually(t, "both wait", func() bool { return p.between(early, late) == 2 })
			ids := connections(t, s)
			fails.Store(true)
			p.forget()

			p.Add(late)

			eventually(t, "both say so", func() bool { return log.count("WARN", "not renewed", failure.says, m.Addr()) == 2 })
			p.Add(time.Hour) // long after it has expired
			if now := connections(t, s); !slices.Equal(ids, now) {
				t.Errorf("connections %v have become %v", ids, now)
			}
			eventually(t, "it is subscribed", func() bool { return m.Subscribed("ch") })
			for len(heard) > 0 {
				<-heard
			}
			do(t, s, "PUBLISH", "ch", "")
			heard.woken(t, "a message")
			wantValue(t, ask(t, m, get("k")), nil)

			fails.Store(false)
			eventually(t, "it is tried again", func() bool {
				p.Add(mostRetry)
				return log.count("INFO", "login at redis master renewed") == 2
			})
		})
	}
}

// A login that breaks the connection costs one vote at a time. The connections of several masters
// are due at the same instant, and each master hangs up when it is asked.
func TestLogins_are_renewed_at_one_master_at_a_time(t *testing.T) {
	t.Parallel()
	p := newPauses()
	var all []*Master
	var mu sync.Mutex
	broken, alone := 0, true
	var begun atomic.Bool
	turn := NewTurn()
	for range 5 {
		connected, broke := false, false
		s := newStub(t, but("AUTH", func([]string) string {
			mu.Lock()
			defer mu.Unlock()
			if !connected || broke {
				connected = true
				return "+OK\r\n"
			}
			broke = true
			broken++
			for _, m := range all {
				alone = alone && m.Status().State == StateConnected
			}
			return hangUp
		}))
		config := slow(p, func(context.Context, string) (Credentials, error) {
			if begun.Load() {
				return Credentials{Password: "pw"}, nil
			}
			return Credentials{Password: "pw", Expires: p.Now().Add(lasts)}, nil
		})
		config.LoginTurn = turn
		m := connect(t, s.addr(), config)
		mu.Lock()
		all = append(all, m)
		mu.Unlock()
	}
	eventually(t, "all wait", func() bool { return p.between(early, late) == len(all) })
	begun.Store(true)
	p.Add(late)
	for n := 1; n <= len(all); n++ {
		eventually(t, "the next one has tried", func() bool { mu.Lock(); defer mu.Unlock(); return broken == n })
		down := func(m *Master) bool { return m.Status().State != StateConnected }
		eventually(t, "it is back", func() bool {
			p.Add(20 * time.Millisecond)
			reconnects := uint64(0)
			for _, m := range all {
				reconnects += m.Status().Reconnects
			}
			return reconnects == uint64(n) && !slices.ContainsFunc(all, down)
		})
		p.Add(50 * time.Hour) // the rest of the turn
	}
	if !alone {
		t.Error("a login was renewed while another master's connection was broken by that")
	}
}

// Whoever hangs when its login is due holds the turn until its connection is given up.
func TestLogin_of_a_hung_master_holds_up_the_others_for_no_longer_than_MaxAge(t *testing.T) {
	t.Parallel()
	p := newPauses()
	turn := NewTurn()
	var hangs atomic.Bool
	renewed := make(chan string, 10)
	server := func(hung bool) *Master {
		s := newStub(t, but("AUTH", func([]string) string {
			if !hangs.Load() {
				return "+OK\r\n"
			}
			if hung {
				return silence
			}
			renewed <- "sound"
			return "+OK\r\n"
		}))
		config := slow(p, func(context.Context, string) (Credentials, error) {
			return Credentials{Password: "pw", Expires: p.Now().Add(lasts)}, nil
		})
		config.LoginTurn, config.MaxAge, config.ConnectTimeout = turn, time.Second, time.Second
		return connect(t, s.addr(), config)
	}
	hung, sound := server(true), server(false)
	eventually(t, "both wait", func() bool { return p.between(early, late) == 2 })
	hangs.Store(true)
	p.Add(late)
	eventually(t, "the sound one has its turn", func() bool {
		p.Add(50 * time.Millisecond)
		return len(renewed) > 0
	})
	eventually(t, "the other one is given up", func() bool {
		p.Add(50 * time.Millisecond)
		return hung.Status().State != StateConnected
	})
	if sound.Status().Reconnects > 0 {
		t.Error("the sound one has lost its connection")
	}
}

func TestCredentials_that_have_expired_are_an_error(t *testing.T) {
	s := newStub(t, healthy)
	p := newPauses()
	m := open(t, s.addr(), slow(p, func(context.Context, string) (Credentials, error) {
		return Credentials{Password: "pw", Expires: p.Now()}, nil
	}))
	err := firstAttempt(t, m)
	if err == nil || !strings.Contains(err.Error(), "credentials: Expires 1970-01-01T00:00:00Z: must be in the future") {
		t.Error(err)
	}
	wantError(t, ask(t, m, get("k")), ErrDown)
	if n := s.dialled(); n != 0 {
		t.Errorf("dialled %d times", n)
	}
}

func TestCredentials_that_expire_very_soon_are_renewed_once_a_second(t *testing.T) {
	s := newStub(t, healthy)
	p := newPauses()
	connect(t, s.addr(), slow(p, func(context.Context, string) (Credentials, error) {
		return Credentials{Password: "pw", Expires: p.Now().Add(1)}, nil
	}))
	for n := 2; n < 5; n++ {
		eventually(t, "it waits", func() bool { return p.between(leastLogin, leastLogin) == 1 })
		p.forget()
		p.Add(leastLogin)
		eventually(t, "it has logged in again", func() bool { return p.between(leastLogin, leastLogin) == 1 })
		if got := strings.Count(strings.Join(s.seen(), "\n"), "AUTH pw"); got != n {
			t.Errorf("%d logins, want %d", got, n)
		}
	}
}

// setClock is a clock that can be set: its timers go on.
type setClock struct {
	*pauses
	by atomic.Int64
}

func (c *setClock) Now() time.Time           { return c.pauses.Now().Add(time.Duration(c.by.Load())) }
func (c *setClock) Monotonic() time.Duration { return c.pauses.Now().Sub(time.Unix(0, 0)) }

func TestLogin_is_renewed_in_time_when_the_clock_is_set(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, healthy)
			c := &setClock{pauses: newPauses()}
			config := slow(c.pauses, func(context.Context, string) (Credentials, error) {
				return Credentials{Password: "pw", Expires: c.Now().Add(lasts)}, nil
			})
			config.Clock = c
			connect(t, s.addr(), config)
			eventually(t, "it waits", func() bool { return c.between(early, late) == 1 })

			c.by.Store(int64(by))
			c.Add(late)

			eventually(t, "it has logged in again", func() bool { return strings.Count(strings.Join(s.seen(), "\n"), "AUTH pw") == 2 })
		})
	}
}

// A login that failed is tried again soon, also if the clock was set back meanwhile.
func TestLogin_that_failed_is_tried_again_when_the_clock_is_set_back(t *testing.T) {
	s := newStub(t, healthy)
	c := &setClock{pauses: newPauses()}
	var fails atomic.Bool
	config := slow(c.pauses, func(context.Context, string) (Credentials, error) {
		if fails.Load() {
			return Credentials{}, errors.New("the vault is sealed")
		}
		return Credentials{Password: "pw", Expires: c.Now().Add(lasts)}, nil
	})
	config.Clock = c
	connect(t, s.addr(), config)
	eventually(t, "it waits", func() bool { return c.between(early, late) == 1 })
	fails.Store(true)
	c.Add(late)
	eventually(t, "it waits to try again", func() bool { return c.between(leastLogin, 2*leastLogin) > 0 })

	c.by.Store(int64(-time.Hour))
	fails.Store(false)

	waited := time.Duration(0)
	eventually(t, "it has tried again", func() bool {
		if waited < time.Minute {
			waited += leastLogin
			c.Add(leastLogin)
		}
		return strings.Count(strings.Join(s.seen(), "\n"), "AUTH pw") >= 2
	})
}

// An error that names another instant each time is no news.
func TestCredentials_that_have_expired_again_are_logged_once(t *testing.T) {
	p, log := newPauses(), &journal{}
	var asked atomic.Int64
	config := Config{Clock: p, Logger: slog.New(log), Credentials: func(context.Context, string) (Credentials, error) {
		asked.Add(1)
		return Credentials{Password: "pw", Expires: p.Now().Add(-time.Hour)}, nil
	}}
	open(t, newStub(t, healthy).addr(), config)
	for range 5 {
		before := asked.Load()
		eventually(t, "it tries again", func() bool {
			p.Add(time.Second)
			return asked.Load() > before
		})
	}
	if n := log.count("WARN", "not connected", "must be in the future"); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

// The turn may be long in coming: a master that hangs has it until its connection is given up.
func TestCredentials_that_expire_before_it_is_their_turn_are_not_sent(t *testing.T) {
	t.Parallel()
	p, log := newPauses(), &journal{}
	var asked, sent atomic.Int64
	s := newStub(t, but("AUTH", func([]string) string {
		sent.Add(1)
		return "+OK\r\n"
	}))
	config := slow(p, func(context.Context, string) (Credentials, error) {
		asked.Add(1)
		return Credentials{Password: "pw", Expires: p.Now().Add(lasts)}, nil
	})
	turn := NewTurn()
	config.LoginTurn, config.Logger = turn, slog.New(log)
	connect(t, s.addr(), config)
	eventually(t, "it waits", func() bool { return p.between(early, late) == 1 })
	<-turn // another master has it
	askedBefore, sentBefore := asked.Load(), sent.Load()
	p.Add(late)
	eventually(t, "it has credentials", func() bool { return asked.Load() > askedBefore })
	p.Add(lasts)

	turn <- struct{}{}

	eventually(t, "it says so", func() bool { return log.count("WARN", "not renewed", "must be in the future") == 1 })
	if n := sent.Load() - sentBefore; n != 0 {
		t.Errorf("it has logged in with them %d times", n)
	}
}

func TestLogins_that_began_together_are_renewed_at_random(t *testing.T) {
	p := newPauses()
	m := open(t, newStub(t, healthy).addr(), Config{Clock: p})
	first, last := time.Duration(1<<62), time.Duration(0)
	for range 1000 {
		d := m.dueBefore(p.Now().Add(12 * time.Hour)).Sub(p.Now())
		first, last = min(first, d), max(last, d)
	}
	if first < 9*time.Hour || last >= 10*time.Hour+30*time.Minute || last-first < 80*time.Minute {
		t.Errorf("a login of 12 h is renewed after %v to %v", first, last)
	}
}

func TestLogin_that_never_expires_is_not_renewed(t *testing.T) {
	for name, login := range map[string]Credentials{
		"without an end": {Password: "pw"},
		"no password":    {User: "ann", Expires: time.Unix(0, 0).Add(lasts)}, // there is no login that could expire
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, healthy)
			p, asked := newPauses(), atomic.Int64{}
			m := connect(t, s.addr(), slow(p, func(context.Context, string) (Credentials, error) {
				asked.Add(1)
				return login, nil
			}))
			for range 24 {
				p.Add(time.Hour)
			}
			wantValue(t, ask(t, m, get("k")), "OK")
			if n := asked.Load(); n != 1 {
				t.Errorf("asked for credentials %d times", n)
			}
		})
	}
}

// An outage that is over makes no pause longer.
func TestLogin_that_fails_after_one_that_was_renewed_is_tried_again_soon(t *testing.T) {
	s := newStub(t, healthy)
	p := newPauses()
	var fails atomic.Bool
	connect(t, s.addr(), slow(p, func(context.Context, string) (Credentials, error) {
		if fails.Load() {
			return Credentials{}, errors.New("the vault is sealed")
		}
		return Credentials{Password: "pw", Expires: p.Now().Add(lasts)}, nil
	}))
	const soon = 2 * leastLogin
	eventually(t, "it waits", func() bool { return p.between(early, late) == 1 })
	fails.Store(true)
	p.Add(late)
	eventually(t, "it tries again rarely", func() bool {
		p.Add(5 * time.Second)
		return p.between(maxAsk+1, mostRetry) > 1 // one is that before
	})
	fails.Store(false)
	p.forget()
	eventually(t, "it is renewed", func() bool {
		p.Add(5 * time.Second)
		return p.between(early, late) > 0
	})
	fails.Store(true)
	p.forget()

	p.Add(late)

	eventually(t, "it waits to try again", func() bool { return p.between(1, mostRetry) > p.between(maxAsk, maxAsk) })
	if p.between(1, soon) == 0 {
		t.Errorf("it does not try again within %v", soon)
	}
}

func TestClose_ends_a_login_that_waits_for_credentials(t *testing.T) {
	s := newStub(t, healthy)
	p := newPauses()
	var begun atomic.Bool
	waits := make(chan struct{}, 10)
	m := connect(t, s.addr(), slow(p, func(ctx context.Context, _ string) (Credentials, error) {
		if begun.Load() {
			waits <- struct{}{}
			<-ctx.Done()
			return Credentials{}, ctx.Err()
		}
		return Credentials{Password: "pw", Expires: p.Now().Add(lasts)}, nil
	}))
	eventually(t, "it waits", func() bool { return p.between(early, late) == 1 })
	begun.Store(true)
	p.Add(late)
	receiveFrom(t, "the question", waits)
	m.Close() // and TestMain finds no goroutine
}

func TestCredentials_are_printed_without_the_password(t *testing.T) {
	c := Credentials{"ann", "hunter2", time.Unix(0, 0).UTC()}
	text, _ := json.Marshal(c)
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", &c), fmt.Sprintf("%#v", c), fmt.Sprintf("%s %x", c, c), string(text)} {
		if strings.Contains(s, "hunter2") || !strings.Contains(s, "ann") || !strings.Contains(s, "1970") {
			t.Error(s)
		}
	}
}

// A server that answers an AUTH with something else answers other questions, too.
func TestLogin_that_is_answered_by_something_else_ends_the_connection(t *testing.T) {
	var logins atomic.Int64
	s := newStub(t, but("AUTH", func([]string) string {
		if logins.Add(1) == 2 {
			return ":1\r\n"
		}
		return "+OK\r\n"
	}))
	p := newPauses()
	m := connect(t, s.addr(), slow(p, func(context.Context, string) (Credentials, error) {
		return Credentials{Password: "pw", Expires: p.Now().Add(lasts)}, nil
	}))
	eventually(t, "it waits", func() bool { return p.between(early, late) == 1 })
	p.Add(late)
	eventually(t, "it has connected again", func() bool {
		p.Add(20 * time.Millisecond)
		return m.Status().Reconnects == 1
	})
}

// A function that is slow holds up no other connection: the turn is taken for the login alone.
func TestLogin_whose_credentials_are_slow_holds_up_no_other(t *testing.T) {
	t.Parallel()
	p := newPauses()
	turn, begun := NewTurn(), atomic.Bool{}
	waits := make(chan struct{}, 1)
	server := func(slowly bool) *stub {
		s := newStub(t, healthy)
		config := slow(p, func(ctx context.Context, _ string) (Credentials, error) {
			if slowly && begun.Load() {
				waits <- struct{}{}
				<-ctx.Done()
				return Credentials{}, ctx.Err()
			}
			return Credentials{Password: "pw", Expires: p.Now().Add(lasts)}, nil
		})
		config.LoginTurn = turn
		connect(t, s.addr(), config)
		return s
	}
	server(true)
	sound := server(false)
	eventually(t, "both wait", func() bool { return p.between(early, late) == 2 })
	begun.Store(true)

	p.Add(late)

	receiveFrom(t, "the question to the slow one", waits)
	eventually(t, "the other one has logged in again", func() bool { return strings.Count(strings.Join(sound.seen(), "\n"), "AUTH pw") == 2 })
}
