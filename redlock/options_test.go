package redlock_test

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestClient_options_out_of_range_are_refused_by_name(t *testing.T) {
	for _, c := range []struct {
		option redlock.Option
		want   []string // the field, the value, what is allowed
	}{
		{redlock.WithTTL(9 * time.Millisecond), []string{"WithTTL", "9ms", "at least 10ms"}},
		{redlock.WithTTL(-time.Second), []string{"WithTTL", "-1s", "at least 10ms"}},
		{redlock.WithNodeTimeout(0), []string{"WithNodeTimeout", "0s", "at least 1ms"}},
		{redlock.WithRetryInterval(0), []string{"WithRetryInterval", "0s", "at least 1ms"}},
		{redlock.WithDriftFactor(-0.1), []string{"WithDriftFactor", "-0.1", "at least 0 and less than 1"}},
		{redlock.WithDriftFactor(1), []string{"WithDriftFactor", "1", "at least 0 and less than 1"}},
		{redlock.WithDriftFactor(math.NaN()), []string{"WithDriftFactor", "NaN", "at least 0 and less than 1"}},
		{redlock.WithDriftFactor(0.9999), []string{"WithDriftFactor", "0.9999", "no validity"}},
		{redlock.WithRestartGuard(time.Millisecond), []string{"WithRestartGuard", "1ms", "at least the TTL 1s"}},
		{redlock.WithRestartGuard(-time.Second), []string{"WithRestartGuard", "-1s", "0 (off) or at least the TTL 1s"}},
		{redlock.WithClockGuard(-1), []string{"WithClockGuard", "-1ns", "0 (off) or positive"}},
		{redlock.WithClock(nil), []string{"WithClock", "nil", "a clock"}},
		{redlock.WithLogger(nil), []string{"WithLogger", "nil", "a logger"}},
		{redlock.WithClientID("!x"), []string{"WithClientID", "!x", "must not begin with !"}},
		{redlock.WithClientID("two words"), []string{"WithClientID", "two words", "space"}},
		{redlock.WithKeyPrefix(strings.Repeat("x", 1025)), []string{"WithKeyPrefix", "1025 bytes", "at most 1024"}},
		{redlock.WithKeyPrefix("app:redlock:queue:"), []string{"WithKeyPrefix", "app:redlock:queue:", "must not have"}},
		{redlock.WithClientID(strings.Repeat("x", 257)), []string{"WithClientID", "257", "at most 256"}},
		{nil, []string{"nil Option"}},
	} {
		ms := newMasters(t, 1)
		_, err := redlock.New([]node.Node{&link{memory: ms.nodes[0]}}, redlock.WithTTL(second), guarded, c.option)
		mustName(t, err, c.want)
	}
}

// An option that has no effect would be a protection that is not there.
func TestNew_refuses_the_options_of_Dial(t *testing.T) {
	for name, option := range map[string]redlock.Option{
		"WithRestartGuard": redlock.WithRestartGuard(0),
		"WithClockGuard":   redlock.WithClockGuard(0),
		"WithDurableNodes": redlock.WithDurableNodes("a:6379"),
		"WithGroup":        redlock.WithGroup("orders"),
		"WithTLS":          redlock.WithTLS(&tls.Config{}),
		"WithDialer":       redlock.WithDialer((&net.Dialer{}).DialContext),
		"WithCredentials": redlock.WithCredentials(func(context.Context, string) (redlock.Credentials, error) {
			return redlock.Credentials{}, nil
		}),
	} {
		ms := newMasters(t, 1)
		_, err := redlock.New([]node.Node{&link{memory: ms.nodes[0]}}, option)
		mustName(t, err, []string{name, "no effect", "Dial"})
	}
}

// A node that may take longer to answer than the lock lasts tells nothing.
func TestNode_timeout_must_be_less_than_the_TTL(t *testing.T) {
	ms := newMasters(t, 1)
	_, err := redlock.New([]node.Node{&link{memory: ms.nodes[0]}}, redlock.WithTTL(second), redlock.WithNodeTimeout(second))
	mustName(t, err, []string{"WithNodeTimeout", "1s", "less than the TTL 1s"})

	client, _ := ms.client(guarded, redlock.WithNodeTimeout(500*time.Millisecond))
	_, err = client.Mutex("orders", redlock.TTL(500*time.Millisecond)).TryLock(ctx)
	mustName(t, err, []string{"TTL(500ms)", "more than the node timeout 500ms"})
}

func mustName(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", want)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestNodes_that_cannot_work_are_refused(t *testing.T) {
	ms := newMasters(t, 1)
	a := &link{memory: ms.nodes[0]}
	for _, c := range []struct {
		nodes []node.Node
		want  []string
	}{
		{nil, []string{"no nodes", "at least 1"}},
		{[]node.Node{a, nil}, []string{"node 1", "nil"}},
		{[]node.Node{a, &link{memory: ms.nodes[0]}}, []string{"master-A", "listed twice"}},
	} {
		_, err := redlock.New(c.nodes)
		mustName(t, err, c.want)
	}
}

// S62: what clients put down to drift between two looks at a clock is given up of each lease.
func TestOptions_drift_factor_shortens_every_lease_by_what_it_hides(t *testing.T) {
	for factor, refused := range map[float64]bool{0.01: false, 0.1: true} {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := redlock.Dial(ended, []string{"127.0.0.1:1"}, redlock.WithDriftFactor(factor), redlock.WithTTL(150*time.Millisecond))
		if err == nil || strings.Contains(err.Error(), "leave no validity") != refused {
			t.Errorf("factor %v: %v", factor, err)
		}
	}
}

// An option that a kind of lock does not have does not compile: its type is another.
func TestOptions_fit_the_kinds_that_have_them_and_no_other(t *testing.T) {
	for _, c := range []struct {
		name                             string
		option                           any
		mutex, multi, rwMutex, semaphore bool
	}{
		{"TTL", redlock.TTL(second), true, true, true, true},
		{"NoRenew", redlock.NoRenew(), true, true, true, true},
		{"Polling", redlock.Polling(second, second), true, true, true, true},
		{"MaxHold", redlock.MaxHold(second), true, true, true, true},
		{"Metadata", redlock.Metadata(""), true, true, true, true},
		{"StopWithin", redlock.StopWithin(second, redlock.Exit(1)), true, true, true, true},
		{"Fair", redlock.Fair(), true, false, false, false},
		{"Fenced", redlock.Fenced(), true, true, false, true},
		{"Reentrant", redlock.Reentrant(), true, true, true, false},
	} {
		_, mutex := c.option.(redlock.MutexOption)
		_, multi := c.option.(redlock.MultiOption)
		_, rwMutex := c.option.(redlock.RWMutexOption)
		_, semaphore := c.option.(redlock.SemaphoreOption)
		if mutex != c.mutex || multi != c.multi || rwMutex != c.rwMutex || semaphore != c.semaphore {
			t.Errorf("%s fits a Mutex: %v, a Multi: %v, an RWMutex: %v, a Semaphore: %v", c.name, mutex, multi, rwMutex, semaphore)
		}
	}
}

func TestLock_options_out_of_range_are_refused_and_nothing_is_sent(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []redlock.MutexOption
		want    []string
	}{
		{"", nil, []string{"lock name", "must not be empty"}},
		{"redlock:marker", nil, []string{"lock name", "must not begin with", "redlock:"}},
		{"app:redlock:queue:orders", nil, []string{"lock name", "app:redlock:queue:orders", "must not have", "redlock:"}},
		{strings.Repeat("x", 16<<10+1), nil, []string{"lock name", "16385 bytes", "at most 16384"}},
		{"orders", []redlock.MutexOption{redlock.TTL(5 * time.Millisecond)}, []string{"TTL", "5ms", "at least 10ms"}},
		{"orders", []redlock.MutexOption{redlock.TTL(time.Minute)}, []string{"TTL", "1m0s", "at most the restart guard 1s"}},
		{"orders", []redlock.MutexOption{redlock.Metadata(strings.Repeat("x", 1025))}, []string{"Metadata", "1025", "at most 1024"}},
		{"orders", []redlock.MutexOption{redlock.TTL(second), redlock.MaxHold(second - 1)}, []string{"MaxHold(999.999999ms)", "at least the TTL 1s"}},
		{"orders", []redlock.MutexOption{redlock.MaxHold(0)}, []string{"MaxHold(0s)", "at least the TTL"}},
		{"orders", []redlock.MutexOption{redlock.StopWithin(0, redlock.Exit(1))}, []string{"StopWithin(0s)", "at least 1ms", "at most half of the validity", "484ms"}},
		{"orders", []redlock.MutexOption{redlock.StopWithin(485*time.Millisecond, redlock.Exit(1))}, []string{"StopWithin(485ms)", "at most half", "484ms with a TTL of 1s"}},
		{"orders", []redlock.MutexOption{redlock.StopWithin(second/5, nil)}, []string{"StopWithin(200ms, nil)", "must be a function", "Exit(1)"}},
		{"orders", []redlock.MutexOption{nil}, []string{`lock "orders"`, "nil option"}},
		{"orders", []redlock.MutexOption{redlock.Metadata("\xff")}, []string{"Metadata", "UTF-8"}},
	} {
		ms := newMasters(t, 1)
		client, _ := ms.client()
		m := client.Mutex(c.name, c.options...)

		for _, op := range []func() error{
			func() error { _, err := m.TryLock(ctx); return err },
			func() error { _, err := m.Lock(ctx); return err },
			func() error { return redlock.Do(ctx, m, func(context.Context) error { t.Error("ran"); return nil }) },
		} {
			err := op()
			mustName(t, err, c.want)
			if err == nil {
				break // the next would wait for the lock
			}
		}
		mustHaveRun(t, ms)
	}
}

func TestS5_no_TTL_above_the_restart_guard(t *testing.T) {
	ms := newMasters(t, 1)
	client, _ := ms.client(redlock.WithRestartGuard(10 * second))
	_, err := client.Mutex("orders", redlock.TTL(10*second+time.Millisecond)).TryLock(ctx)
	mustName(t, err, []string{"TTL(10.001s)", "at most the restart guard 10s"})

	lease := mustLock(t, client.Mutex("orders", redlock.TTL(10*second)))
	mustName(t, lease.Extend(ctx, 11*second), []string{"Extend(11s)", "at most the restart guard 10s"})
}

func TestRestart_guard_off_allows_any_TTL(t *testing.T) {
	ms := newMasters(t, 1)
	client, _ := ms.client(redlock.WithRestartGuard(0))
	mustLock(t, client.Mutex("orders", redlock.TTL(24*time.Hour)))
}

func TestNames_of_any_shape(t *testing.T) {
	for _, name := range []string{"with spaces", "with:colons", "Schlüssel-鍵-🔒", strings.Repeat("long", 2560), "line\nbreak"} {
		ms := fiveMasters(t)
		client, _ := ms.client(redlock.WithKeyPrefix("app:"))
		mustLock(t, client.Mutex(name))
		if ms.holders("app:" + name)[0] == "" {
			t.Errorf("%.40q is not stored under prefix and name", name)
		}
	}
}
