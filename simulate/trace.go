package simulate

import "time"

// trace records what a timeline shows. A nil trace records nothing.
type trace struct {
	spans []span
	marks []mark
}

// span is something that lasted.
type span struct {
	lane     string
	kind     spanKind
	from, to time.Duration
	label    string
}

type spanKind string

const (
	spanHeld    spanKind = "held"
	spanWaiting spanKind = "waiting"
	spanStopped spanKind = "stopped"
	spanDown    spanKind = "down"
	spanKey     spanKind = "key"
)

// mark is something that happened at an instant.
type mark struct {
	lane  string
	at    time.Duration
	label string
}

func (t *trace) add(s span) {
	if t != nil {
		t.spans = append(t.spans, s)
	}
}

func (t *trace) held(cl *claim, now time.Duration) {
	if t == nil {
		return
	}
	to := now
	if cl.ended {
		to = cl.end
	}
	t.add(span{cl.client.host.name, spanHeld, cl.since, to, cl.name})
}
