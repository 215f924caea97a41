package simulate

// variant is a rule of the protocol as it might have been, on every master, and is
// wrong. An exhaustive model of the protocol shows that each is; that the simulator
// finds it shows that it looks at what the rule is for.
//
// What clients might have done wrong are fields of seam.Unsafe, and breaks in
// internal/mutate/breaks.txt.
type variant struct {
	name  string
	about string   // what the masters do
	lock  LockKind // that shows it
}

// The variants, by what masters do.
const (
	noIntent = "no-intent"

	confirmsAnything = "confirms-any-token"

	believesClocks = "believes-any-clock"

	arrivalOrder = "arrival-order"

	countsResends = "counts-resends"
	noWriteBack   = "no-write-back"

	extendsAny = "extends-any"
	grantsFree = "grants-what-is-free"

	releasesGive = "only-releases-give"
	yieldsToAny  = "yields-to-anyone"
)

// variants lists them all.
var variants = []variant{
	{name: noIntent, lock: ReadWriteLock, about: "readers do not let a writer pass that waits"},
	{name: believesClocks, lock: FencedLock, about: "a counter is raised to the clock of any client, and counts on above 2^53 (S53)"},
	{name: arrivalOrder, lock: FairLock, about: "each master queues waiters as they come"},
	{name: countsResends, lock: Latch, about: "an arrival that is sent again counts twice"},
	{name: noWriteBack, lock: Latch, about: "what was counted is not written back"},
	{name: extendsAny, lock: MultiLock, about: "extended, if one of the locks was ours"},
	{name: grantsFree, lock: MultiLock, about: "those of the locks that are free are granted"},
	{name: releasesGive, lock: PlainLock, about: "only a release hands on, and no ask"},
	{name: yieldsToAny, lock: PlainLock, about: "whoever asks again yields to any other, not to who came earlier"},
}
