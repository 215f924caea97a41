package simulate

import (
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// variant is a rule of the protocol as it might have been, on every master or of every operator, and is
// wrong. An exhaustive model of the protocol shows that each is; that the simulator
// finds it shows that it looks at what the rule is for.
//
// What clients might have done wrong are fields of weaker.Lacks, and breaks in
// internal/mutate/breaks.txt.
type variant struct {
	name  string
	about string        // what the masters or the operators do
	lock  plan.LockKind // that shows it
	nodes int           // with which it shows most; zero: drawn
	seed  uint64        // of a schedule that shows it; those behind it may, too
}

// variants lists them all.
var variants = []variant{
	{name: masters.NoIntent, seed: 19, lock: plan.ReadWriteLock, about: "readers do not let a writer pass that waits"},
	{name: masters.BelievesClocks, seed: 18, lock: plan.FencedLock, about: "a counter is raised to the clock of any client, and counts on above 2^53 (S53)"},
	{name: masters.ArrivalOrder, seed: 6, lock: plan.FairLock, about: "each master queues waiters as they come"},
	{name: masters.CountsResends, lock: plan.Latch, about: "an arrival that is sent again counts twice"},
	{name: masters.NoWriteBack, seed: 5, lock: plan.Latch, about: "what was counted is not written back"},
	{name: masters.ExtendsAny, lock: plan.MultiLock, about: "extended, if one of the locks was ours"},
	{name: masters.GrantsFree, lock: plan.MultiLock, about: "those of the locks that are free are granted"},
	{name: masters.ReleasesGive, lock: plan.PlainLock, about: "only a release hands on, and no ask"},
	{name: masters.KeepsNothing, seed: 11, lock: plan.PlainLock, about: "AtLeast keeps a lock only behind its release, and not behind a crash (S73)"},
	{name: masters.ReleasesKept, seed: 11, lock: plan.PlainLock, about: "a release deletes what AtLeast keeps (S73)"},
	{name: masters.KeepsLonger, seed: 11, lock: plan.PlainLock, about: "a release keeps a lock until its TTL is over, also where nobody asked to keep it any longer (L56)"},
	{name: masters.MovesAtOnce, lock: plan.GroupsLock, about: "an operator who has told that names move lets the new groups have them at once (S83)"},
	{name: masters.MovesUntold, lock: plan.GroupsLock, about: "an operator waits, and has not told that names move (S83)"},
	{name: masters.YieldsToAny, seed: 34, lock: plan.PlainLock, nodes: 2, about: "whoever asks again yields to any other, not to who came earlier"},
}
