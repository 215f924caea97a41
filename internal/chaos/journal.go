package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Event is one line of a client's journal.
type Event struct {
	At   time.Duration `json:"at"`
	Kind EventKind     `json:"kind"`

	Workload string `json:"workload,omitempty"`
	Lock     string `json:"lock,omitempty"`
	Lease    string `json:"lease,omitempty"` // its value, which no other lease has, and more where it stands for several spans
	Weight   int    `json:"weight,omitempty"`
	Token    uint64 `json:"token,omitempty"`

	Since  time.Duration `json:"since,omitempty"`
	Until  time.Duration `json:"until,omitempty"`
	Text   string        `json:"text,omitempty"`
	Update *Update       `json:"update,omitempty"`
	Depth  int           `json:"depth,omitempty"`
	Count  int           `json:"count,omitempty"`
}

// EventKind tells events apart.
type EventKind string

const (
	Held     EventKind = "held"     // the lease is valid since, at the latest
	Valid    EventKind = "valid"    // it is still valid
	Lost     EventKind = "lost"     // its loss was announced; its validity ended at Until
	Left     EventKind = "left"     // it was given up; it was valid until then if Until is set
	Unlocked EventKind = "unlocked" // Unlock has returned, with the error Text
	Failed   EventKind = "failed"   // the lock, wanted since Since, was not acquired, because of Text
	Broken   EventKind = "broken"   // a turn went wrong, because of Text
	Updated  EventKind = "updated"  // the storage was read and written under the lease
	Refused  EventKind = "refused"  // the storage knew a higher token than that of the lease
	Stalled  EventKind = "stalled"  // the process did not run from At to Until
	Counted  EventKind = "counted"  // the lease is to be held Depth times, and says Count; it had ended if Text is set
	Closed   EventKind = "closed"   // the client has been closed, with the error Text

	// Of a latch, whose name is in Lock.
	Arriving EventKind = "arriving" // the arrival of Text is about to be reported
	Arrived  EventKind = "arrived"  // it was confirmed, after it had been reported at Since
	Tallied  EventKind = "tallied"  // Count were there, after they were asked for at Since
	Opened   EventKind = "opened"   // a Wait that had begun at Since was let through
	Waited   EventKind = "waited"   // it was not, because of Text
	Whole    EventKind = "whole"    // between Since and At every master said that its set is whole
)

// Update is a read and a write of one register in the storage: it is lost
// when two clients do it at the same time.
type Update struct {
	Register string        `json:"register"`
	ID       string        `json:"id"`  // the written value
	Saw      string        `json:"saw"` // the value read before
	From     time.Duration `json:"from"`
	To       time.Duration `json:"to"`
	// Covered: the lease was valid before the read and after the write, so
	// no other client can have written in between.
	Covered bool `json:"covered"`
}

// Journal takes a client's events. Each is handed to the system immediately, so
// that it outlives the process.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

func openJournal(name string) (*Journal, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{file: f}, nil
}

func (j *Journal) write(e Event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // an Event can always be written
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		panic(fmt.Errorf("chaos: journal: %w", err)) // a gap would go unnoticed
	}
}

// readJournal returns the events in the order in which they were written. The
// last line of a process that was killed may be cut short.
func readJournal(name string) ([]Event, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was killed before it had anything to say
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []Event
	decoder := json.NewDecoder(bufio.NewReader(f))
	for {
		var e Event
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		events = append(events, e)
	}
}
