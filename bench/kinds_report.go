package bench

// kindsTitle stands above the table of kinds.
const kindsTitle = "Kinds of locks"

// aboutKinds explains the table, and names the libraries that are not in it.
const aboutKinds = "p50 and p99 are of one caller, pairs/s of 64 callers, each with a lock of its own. " +
	"The first columns are this library on a majority of its masters; the others what is in use today: the algorithms that Redisson documents, on ONE master, over a redigo pool. " +
	"The scripts are ours, and on one master a lock is lost with its memory. " +
	"redsync, rueidislock and redislock have the mutex only; nobody here has elections but us. " +
	"Re-entrant: locked twice by the same holder. Semaphore: one of five permits, with an end of its own. Latch: arrive, and count who has."

// kinds are the groups of a report that are shown in one table.
func (r *Report) kinds() (all []*group) {
	for _, g := range r.groups() {
		if isKind(g) {
			all = append(all, g)
		}
	}
	return all
}

func isKind(g *group) bool { return kindOf(g.workload) == "kinds" }

// together gives the groups of one report for the tables in which they are shown: the
// kinds of locks are one.
func (r *Report) together(one func(*group), kinds func([]*group)) {
	told := false
	for _, g := range r.groups() {
		switch {
		case !isKind(g):
			one(g)
		case !told:
			told = true
			kinds(r.kinds())
		}
	}
}

// kindsTable has a row for each kind, with us and them beside each other.
func (r *Report) kindsTable(all []*group) *table {
	us, them := all[0].results[0].Subject, ""
	for _, g := range all {
		if len(g.results) > 1 {
			them = g.results[1].Subject
		}
	}
	title := kindsTitle + ": " + us + " (us)"
	if them != "" {
		title += ", and " + them + " (them)"
	}
	t := &table{title: title, rows: [][]string{{
		"", "us p50 µs", "us p99 µs", "them p50 µs", "them p99 µs", "p50 ratio", "us pairs/s", "them pairs/s", "rate ratio",
	}}}
	for _, g := range all {
		ours, theirs := g.results[0], &Result{}
		if len(g.results) > 1 {
			theirs = g.results[1]
		}
		t.rows = append(t.rows, []string{
			g.title,
			show("%.0f", ours.value(P50)), show("%.0f", ours.value(P99)), show("%.0f", theirs.value(P50)), show("%.0f", theirs.value(P99)),
			show("%.2fx", r.Ratio(g.workload, ours.Subject, theirs.Subject, P50)),
			show("%.0f", ours.value(PerSecond)), show("%.0f", theirs.value(PerSecond)),
			show("%.2fx", r.Ratio(g.workload, ours.Subject, theirs.Subject, PerSecond)),
		})
		for _, note := range g.faults() {
			t.notes = append(t.notes, g.title+", "+note)
		}
	}
	return t
}
