package node

import (
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// An ask that is late finds its reader there, with a renewal that came before.
func TestReadWrite_a_late_ask_brings_no_end_of_a_reader_forward(t *testing.T) {
	t.Parallel()
	s, rw := redistest.Start(t), wire.ReadWriteOf("", "a")
	runOn(t, s, rw.Read(wire.OpAsk, aHolder, time.Minute, 1))
	runOn(t, s, rw.ExtendReader(aHolder, time.Hour))
	end := func() int64 {
		ms, err := strconv.ParseInt(string(do(t, s, "ZSCORE", "redlock:readers:a", "c/nnnnnnnnnnnnnnnn/h").([]byte)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	renewed := end()

	runOn(t, s, rw.Read(wire.OpAsk, aHolder, time.Minute, 1))

	if got := end(); got < renewed {
		t.Errorf("the reader ends %d ms earlier", renewed-got)
	}
}

func TestReadWrite_a_downgrade_tells_the_readers_who_wait(t *testing.T) {
	t.Parallel()
	s, rw := redistest.Start(t), wire.ReadWriteOf("", "a")
	told := listenIn(t, s)
	runOn(t, s, rw.Write(wire.OpAcquire, aHolder, time.Minute, 0))
	runOn(t, s, rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/r1:1", time.Minute, 1))
	runOn(t, s, rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/r2:1", time.Minute, 2))

	runOn(t, s, rw.ExtendReader(aHolder, time.Minute))

	if said := told(); len(said) != 2 || said[0].Value != "c/nnnnnnnnnnnnnnnn/r1:1" || said[1].Value != "c/nnnnnnnnnnnnnnnn/r2:1" {
		t.Errorf("told: %v, want both readers", said)
	}
}

// After a Resize to fewer slots are held that there are no more. They are permits, too.
func TestPermits_of_before_a_resize_to_fewer_count(t *testing.T) {
	t.Parallel()
	s, p := redistest.Start(t), wire.PermitsOf("", "a")
	runOn(t, s, p.Take(wire.OpAcquire, aHolder, time.Minute, 0, 5, 2, 3, 0)) // slots 3 and 4
	runOn(t, s, p.Resize(2, 1))

	answer, err := askWithin(t, s, time.Second, p.Take(wire.OpAcquire, aStranger, time.Minute, 0, 2, 1, 0, 0))

	if err != nil {
		t.Fatal(err)
	}
	if said := answer.([]any); len(said) != 3 {
		t.Errorf("answered %q beside 2 of 2 that are held, want a refusal", said)
	}
}
