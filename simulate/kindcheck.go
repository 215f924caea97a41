package simulate

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// KindCheck is a check that only some kinds of locks have.
type KindCheck string

// The checks of the kinds. The table of a run shows those that were made.
const (
	tokenRises       KindCheck = "each fencing token is above those before"
	nobodyPassed     KindCheck = "nobody is passed who was queued before"
	wholeSets        KindCheck = "no name of a Multi has two holders"
	writerAlone      KindCheck = "a writer holds the lock alone"
	permitsFit       KindCheck = "no more permits are out than there are"
	lockedAgain      KindCheck = "who locks again gets the lease it has"
	waitsForOthers   KindCheck = "nobody waits for a name of its own Multi"
	countsOnlySent   KindCheck = "no count has more arrivals than were sent"
	countsAll        KindCheck = "a count has all that were confirmed or counted"
	letThroughInTime KindCheck = "nobody is let through a latch early"
	opensAtLast      KindCheck = "the latch opens when all is well again"
	leadersInOrder   KindCheck = "leaders, and what they say, are seen in order"
	leaderSaid       KindCheck = "what an observer sees was said by that leader"
	leaderAgreed     KindCheck = "a leader is seen with a token that a majority of the masters has"
)

var kindChecks = []KindCheck{
	tokenRises, nobodyPassed, wholeSets, writerAlone, permitsFit, lockedAgain, waitsForOthers,
	countsOnlySent, countsAll, letThroughInTime, opensAtLast, leadersInOrder, leaderSaid, leaderAgreed,
}

// KindChecks is how often a check was made, and how often it failed.
type KindChecks struct {
	Check  KindCheck `json:"check"`
	Made   int       `json:"made"`
	Failed int       `json:"failed"`
}

// KindChecks lists the checks of the kinds that were made, in a fixed order.
func (s *Stats) KindChecks() (list []KindChecks) {
	for _, c := range kindChecks {
		if s.made[c] > 0 {
			list = append(list, KindChecks{c, s.made[c], s.failed[c]})
		}
	}
	return list
}

func (s *Stats) checked(c KindCheck, ok bool) {
	s.made[c]++
	if !ok {
		s.failed[c]++
	}
}

// addKindChecks adds the counts of others.
func (s *Stats) addKindChecks(others []KindChecks) {
	for _, o := range others {
		s.made[o.Check] += o.Made
		s.failed[o.Check] += o.Failed
	}
}

// check makes a check of a workload's own.
func (p *Process) check(c KindCheck, ok bool, format string, args ...any) {
	p.trial.stats.checked(c, ok)
	if !ok {
		p.Fail(format, args...)
	}
}

// ofHolders is the check of those who hold a lock of this kind at the same time. It
// counts once for each of them, and goes on for as long as they have the lock.
func (k *checker) ofHolders() (KindCheck, bool) {
	switch kind := k.trial.config.Lock; {
	case kind.IsSemaphore():
		return permitsFit, true
	case kind.IsMulti():
		return wholeSets, true
	case kind == ReadWriteLock:
		return writerAlone, true
	}
	return "", false
}

// clashed notes that the check of those who hold a lock failed.
func (k *checker) clashed() {
	if c, ok := k.ofHolders(); ok {
		k.trial.stats.failed[c]++
	}
}

// writeKindChecks writes what was checked of the kinds of locks alone.
func (s *Stats) writeKindChecks(w io.Writer) error {
	list := s.KindChecks()
	if len(list) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\ncheck of the kind of lock\tmade\tfailed\n")
	for _, c := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Check, thousands(c.Made), thousands(c.Failed))
	}
	return t.Flush()
}
