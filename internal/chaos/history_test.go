package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// held is the journal of a lease that was valid from one instant to another.
func held(lease string, from, to time.Duration) []Event {
	return heldWeight(lease, 1, from, to)
}

func heldWeight(lease string, weight int, from, to time.Duration) []Event {
	return []Event{
		{At: from, Kind: Held, Workload: "counter", Lock: "counter", Lease: lease, Weight: weight},
		{At: to, Kind: Valid, Workload: "counter", Lease: lease},
	}
}

func historyOf(journals ...[]Event) *History {
	h := &History{}
	for i, events := range journals {
		h.add(i, "c"+string(rune('0'+i)), events)
	}
	return h
}

func TestTwo_holders_are_found(t *testing.T) {
	for name, test := range map[string]struct {
		capacity, want int
		journals       [][]Event
	}{
		"one after the other":       {1, 0, [][]Event{held("a", 1, 5), held("b", 5, 9)}},
		"at once":                   {1, 1, [][]Event{held("a", 1, 6), held("b", 5, 9)}},
		"one within the other":      {1, 1, [][]Event{held("a", 1, 9), held("b", 4, 5)}},
		"three at once":             {1, 2, [][]Event{held("a", 1, 9), held("b", 4, 8), held("c", 5, 7)}},
		"seen valid only once":      {1, 0, [][]Event{held("a", 1, 9), held("b", 4, 4)}},
		"two permits, two at once":  {2, 0, [][]Event{held("a", 1, 9), held("b", 4, 8)}},
		"two permits, three":        {2, 1, [][]Event{held("a", 1, 9), held("b", 4, 8), held("c", 5, 7)}},
		"readers together":          {9, 0, [][]Event{held("a", 1, 9), held("b", 4, 8), held("c", 5, 7)}},
		"a writer beside a reader":  {9, 1, [][]Event{held("a", 1, 9), heldWeight("w", 9, 4, 8)}},
		"a writer after the reader": {9, 0, [][]Event{held("a", 1, 4), heldWeight("w", 9, 4, 8)}},
	} {
		if got := historyOf(test.journals...).overlaps("counter", test.capacity); len(got) != test.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}

func TestA_loss_is_late_unless_its_process_stood_still(t *testing.T) {
	const end = time.Second
	lost := func(at time.Duration) Event {
		return Event{At: at, Kind: Lost, Lease: "a", Since: at, Until: end, Text: "expired"}
	}
	unwatched := lost(end + time.Second)
	unwatched.Since = end - time.Millisecond
	for name, test := range map[string]struct {
		events []Event
		want   int
	}{
		"in time":                   {[]Event{lost(end - time.Millisecond)}, 0},
		"late":                      {[]Event{lost(end + time.Millisecond)}, 1},
		"perhaps in time":           {[]Event{unwatched}, 0},
		"stood still":               {[]Event{lost(end + 5*time.Millisecond), {At: end - 15*time.Millisecond, Kind: Stalled, Until: end}}, 0},
		"stood still, for a moment": {[]Event{lost(end + 5*time.Millisecond), {At: end - 9*time.Millisecond, Kind: Stalled, Until: end}}, 1},
		"the same noted twice":      {[]Event{lost(end + 5*time.Millisecond), {At: end - 9*time.Millisecond, Kind: Stalled, Until: end}, {At: end - 9*time.Millisecond, Kind: Stalled, Until: end - 1}}, 1},
		"noted by two, in turns":    {[]Event{lost(end + 5*time.Millisecond), {At: end - 9*time.Millisecond, Kind: Stalled, Until: end}, {At: end - 18*time.Millisecond, Kind: Stalled, Until: end - 9*time.Millisecond}}, 0},
		"stood still before":        {[]Event{lost(end + 5*time.Millisecond), {At: end / 2, Kind: Stalled, Until: end / 2 * 15 / 10}}, 1},
		"somebody else's late":      {[]Event{{At: end, Kind: Lost, Lease: "b", Until: 0}}, 0},
	} {
		events := append(held("a", 1, end/2), test.events...)
		if got := historyOf(events).lateLosses(); len(got) != test.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}

func TestA_value_that_is_used_twice_is_found(t *testing.T) {
	if got := historyOf(held("a", 1, 2), held("a", 3, 4)).check(); len(got) != 1 || got[0].Check != RepeatedValue {
		t.Errorf("got %v, want one %s", got, RepeatedValue)
	}
}

// stored is a history with a storage to which ids were written, each by one
// that had seen another: "b a" is b over a.
func stored(t *testing.T, writes ...string) *History {
	t.Helper()
	h := historyOf(nil)
	h.dir, h.storage = t.TempDir(), openStorage(redistest.Start(t).Addr())
	t.Cleanup(func() { h.storage.pool.Close() })
	for _, w := range writes {
		id, saw, _ := strings.Cut(w, " ")
		if err := h.storage.write("r", id, saw, 0); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *History) update(id, saw string, from, to time.Duration, covered bool) {
	h.Updates[id] = &Update{Register: "r", ID: id, Saw: saw, From: from, To: to, Covered: covered}
}

func TestAn_update_that_is_overwritten_unseen_is_found(t *testing.T) {
	h := stored(t, "a ", "b a", "c a")
	h.update("a", "", 1, 2, true)
	h.update("b", "a", 3, 5, true)
	h.update("c", "a", 4, 6, true)
	if got := h.lostUpdates("r"); len(got) != 1 || !strings.Contains(got[0].Text, "c was written") {
		t.Errorf("got %v, want c over b", got)
	}
	if got := h.linearizable("r"); len(got) != 1 {
		t.Errorf("porcupine found %v, want one register that is not atomic", got)
	}
	if page, err := os.ReadFile(h.page("r")); err != nil || len(page) == 0 {
		t.Errorf("there is no page: %v", err)
	}
}

// S7: nothing but a fencing token helps against a write that comes late.
func TestS7_a_write_of_a_process_that_stood_still_is_not_held_against_the_lock(t *testing.T) {
	h := stored(t, "a ", "b a", "c a", "d c")
	h.update("a", "", 1, 2, true)
	h.update("b", "a", 3, 5, true)
	h.update("c", "a", 2, 6, false)
	h.update("d", "c", 7, 8, true)
	if got := append(h.lostUpdates("r"), h.linearizable("r")...); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	if got := h.lateWrites("r"); got != 1 {
		t.Errorf("%d late writes, want 1", got)
	}
}

func TestA_journal_may_end_in_mid_line(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	j.write(Event{At: 1, Kind: Held, Lease: "a"})
	if _, err := j.file.WriteString(`{"at":2,"kind":"va`); err != nil {
		t.Fatal(err)
	}
	j.file.Close()
	events, err := readJournal(name)
	if err != nil || len(events) != 1 || events[0].Lease != "a" {
		t.Errorf("got %v, %v, want the one whole line", events, err)
	}
	if events, err := readJournal(name + "-none"); err != nil || len(events) != 0 {
		t.Errorf("a journal that was never begun: %v, %v", events, err)
	}
}

func TestA_token_that_does_not_rise_is_found(t *testing.T) {
	with := func(token uint64, events []Event) []Event {
		events[0].Token = token
		return events
	}
	for name, test := range map[string]struct {
		want     int
		journals [][]Event
	}{
		"rising":       {0, [][]Event{with(1, held("a", 1, 2)), with(7, held("b", 3, 4))}},
		"the same":     {1, [][]Event{with(1, held("a", 1, 2)), with(1, held("b", 3, 4))}},
		"falling":      {1, [][]Event{with(7, held("a", 1, 2)), with(1, held("b", 3, 4))}},
		"none":         {1, [][]Event{held("a", 1, 2)}},
		"other client": {1, [][]Event{with(7, held("b", 3, 4)), with(8, held("a", 1, 2))}},
	} {
		if got := historyOf(test.journals...).fallingTokens("counter"); len(got) != test.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}

// S7 and S8: who was overtaken is refused, and every write sees the one before it.
func TestS8_the_storage_refuses_a_lower_token(t *testing.T) {
	h := stored(t)
	write := func(id, saw string, token uint64) error { return h.storage.write("r", id, saw, token) }
	if _, err := h.storage.read("r", 5); err != nil {
		t.Fatal(err)
	}
	if err := write("a", "", 4); err != errStale {
		t.Errorf("a write with a token lower than that of a reader: %v, want %v", err, errStale)
	}
	if err := write("b", "", 5); err != nil {
		t.Error(err)
	}
	if saw, err := h.storage.read("r", 6); err != nil || saw != "b" {
		t.Errorf("read %q, %v, want b", saw, err)
	}
	if got := h.brokenChain("r"); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	if err := write("c", "", 6); err != nil {
		t.Fatal(err)
	}
	if got := h.brokenChain("r"); len(got) != 1 {
		t.Errorf("got %v, want c over b", got)
	}
}
