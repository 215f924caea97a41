package tally

// KindCheck is a check that only some kinds of locks have.
type KindCheck string

// The checks of the kinds. The table of a run shows the checks that were made.
const (
	TokenRises       KindCheck = "each fencing token is above those before"
	NobodyPassed     KindCheck = "nobody is passed who was queued before"
	OncePerPeriod    KindCheck = "nobody gets a lock that another keeps by AtLeast"
	KeptNoLonger     KindCheck = "no release keeps a lock longer than AtLeast said"
	WorkStops        KindCheck = "no step of work with StopWithin comes after its deadline"
	WholeSets        KindCheck = "no name of a Multi has two holders"
	WriterAlone      KindCheck = "a writer holds the lock alone"
	PermitsFit       KindCheck = "no more permits are out than there are"
	LockedAgain      KindCheck = "who locks again gets the lease it has"
	WaitsForOthers   KindCheck = "nobody waits for a name of its own Multi"
	CountsOnlySent   KindCheck = "no count has more arrivals than were sent"
	CountsAll        KindCheck = "a count has all that were confirmed or counted"
	LetThroughInTime KindCheck = "nobody is let through a latch early"
	OpensAtLast      KindCheck = "the latch opens when all is well again"
	LeadersInOrder   KindCheck = "leaders, and what they say, are seen in order"
	LeaderSaid       KindCheck = "what an observer sees was said by that leader"
	LeaderAgreed     KindCheck = "a leader is seen whom most of the masters tell of"
	ChosenLeads      KindCheck = "the chosen client leads after a transfer"
	TransferEnds     KindCheck = "a transfer ends the lease, or says why not and leaves it"
	RequestReaches   KindCheck = "a request reaches its holder within a renewal"
	RequestForHolder KindCheck = "a request reaches no later holder"
	StaysUndisturbed KindCheck = "a name that stays in its group is found there"
)

var kindChecks = []KindCheck{
	TokenRises, NobodyPassed, OncePerPeriod, KeptNoLonger, WorkStops, WholeSets, WriterAlone, PermitsFit, LockedAgain, WaitsForOthers,
	CountsOnlySent, CountsAll, LetThroughInTime, OpensAtLast, LeadersInOrder, LeaderSaid, LeaderAgreed,
	ChosenLeads, TransferEnds, RequestReaches, RequestForHolder, StaysUndisturbed,
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
		if s.Made[c] > 0 {
			list = append(list, KindChecks{c, s.Made[c], s.Failed[c]})
		}
	}
	return list
}

func (s *Stats) Checked(c KindCheck, ok bool) {
	s.Made[c]++
	if !ok {
		s.Failed[c]++
	}
}

// AddKindChecks adds the counts of others.
func (s *Stats) AddKindChecks(others []KindChecks) {
	for _, o := range others {
		s.Made[o.Check] += o.Made
		s.Failed[o.Check] += o.Failed
	}
}
