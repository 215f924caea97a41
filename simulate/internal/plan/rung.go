package plan

// Rung is one step of the ladder of naive locks that people write again and again. Each mends
// the defect of the one before and has another. They run on the same masters and network as the
// library, to show that the simulator finds the defect of each.
type Rung struct {
	Name   string
	About  string
	Flaw   string // why it fails
	Nested bool   // its own client may lock again while it holds the lock
}
