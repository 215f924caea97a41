package masters

// The wrong rules, one of which a Keyspace may follow.
const (
	NoIntent = "no-intent"

	ConfirmsAnything = "confirms-any-token"

	BelievesClocks = "believes-any-clock"

	ArrivalOrder = "arrival-order"

	CountsResends = "counts-resends"
	NoWriteBack   = "no-write-back"

	ExtendsAny = "extends-any"
	GrantsFree = "grants-what-is-free"

	ReleasesGive = "only-releases-give"
	YieldsToAny  = "yields-to-anyone"

	KeepsNothing = "keeps-nothing"
	ReleasesKept = "releases-what-is-kept"
	KeepsLonger  = "keeps-longer"
	CallsOne     = "calls-one-waiter"

	WaitsForTheDead = "waits-for-the-dead"
	KeepsIntent     = "keeps-intent"

	MovesAtOnce = "moves-at-once"
	MovesUntold = "moves-untold"
)
