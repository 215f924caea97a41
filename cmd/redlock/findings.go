package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/quorum"
)

// severity is how bad a finding is.
type severity string

const (
	critical severity = "critical" // two holders are possible, or no lock at all
	warning  severity = "warning"  // locks are safe, but may be hard to get
	note     severity = "note"     // worth knowing
)

func (s severity) rank() int { return slices.Index([]severity{critical, warning, note}, s) }

func (s severity) exit() error {
	switch s {
	case critical:
		return cli.Fail(exitCritical, nil)
	case warning:
		return cli.Fail(exitWarning, nil)
	}
	return nil
}

func (s severity) style() cli.Style {
	switch s {
	case critical:
		return cli.Bad
	case warning:
		return cli.Caution
	}
	return cli.Faint
}

// finding is something about one master or several, and what to do about it.
type finding struct {
	Severity severity `json:"severity"`
	Nodes    []string `json:"nodes"`
	What     string   `json:"what"`
	Do       string   `json:"do"`
}

// rule finds one problem of one master, or none: a finding with an empty What.
type rule func(f facts) finding

// judge applies the rules to every master, and to all of them together. A finding
// about several masters is printed once. The worst come first.
func judge(all []facts, nodeTimeout time.Duration, ours guard.GroupID) []finding {
	var found []finding
	inUse := slices.ContainsFunc(all, func(f facts) bool { return f.inUse })
	for _, f := range all {
		if inUse && f.trace == untouched {
			f.trace = outdated // init refuses: it is a replacement, or has lost its memory
		}
		for _, r := range rules(nodeTimeout, ours) {
			if one := r(f); one.What != "" {
				one.Nodes = []string{f.Node}
				found = merge(found, one)
			}
		}
	}
	found = append(found, together(all)...)
	checkup{Findings: found}.sort()
	return found
}

// merge adds a finding, or its master to the same finding about another.
func merge(found []finding, one finding) []finding {
	for i := range found {
		if found[i].Severity == one.Severity && found[i].What == one.What {
			found[i].Nodes = append(found[i].Nodes, one.Nodes...)
			return found
		}
	}
	return append(found, one)
}

func rules(nodeTimeout time.Duration, ours guard.GroupID) []rule {
	answered := []rule{evicts, full, diskTrouble, alone, unmarked, clockOff, denied, limited, persistence, replicas, unseen, quarantined,
		func(f facts) finding { return slow(f, nodeTimeout) },
		func(f facts) finding { return otherGroup(f, ours) },
	}
	all := []rule{silent}
	for _, r := range answered {
		all = append(all, func(f facts) finding {
			if f.Error != "" {
				return finding{}
			}
			return r(f)
		})
	}
	return all
}

func silent(f facts) finding {
	if f.Error == "" {
		return finding{}
	}
	return finding{Severity: warning, What: cli.Spoken(f.Error), Do: remedy(f.Error)}
}

// remedy says what to do about a master that cannot be asked.
func remedy(failure string) string {
	for _, one := range []struct{ says, do string }{
		{"connection refused", "No server listens there: start it, or correct the address in --nodes."},
		{"no such host", "Correct the name in --nodes, or its entry in DNS."},
		{"NOAUTH", "It wants a password: give it in --password-file or --password-command, and the user in --user."},
		{"WRONGPASS", "Correct --user and the password, or the user on the master (ACL SETUSER)."},
		{"invalid password", "Correct the password in --password-file, or of --password-command."},
		{"NOPERM", "Give the user the rights that docs/permissions.md lists."},
		{"not a master", "It is a replica: list its master instead, or make it a master of its own (REPLICAOF NO ONE), to which nothing fails over."},
		{"certificate", "Correct --tls-ca, or the certificate of the master."},
		{"older", "Update the server."},
		{"LOADING", "It reads its data from disk: wait until it has."},
		{"timed out", "Nothing answers there: look at the server, the network and the firewall between."},
		{"deadline exceeded", "Nothing answers there: look at the server, the network and the firewall between."},
		{"i/o timeout", "Nothing answers there: look at the server, the network and the firewall between."},
	} {
		if strings.Contains(failure, one.says) {
			return one.do
		}
	}
	return "Look at the server and its log. A lock needs a majority of the masters."
}

// otherGroup is S14: the quorums of two lists of masters need not intersect.
func otherGroup(f facts, ours guard.GroupID) finding {
	if err := ours.Differs(f.group); err != nil {
		return finding{Severity: critical, What: cli.Spoken(err.Error()),
			Do: "It refuses every client with this list (exit code 78). Give all clients the same --nodes and --group, or make these masters one group: redlock init --regroup."}
	}
	if ours.Doubtful(f.group) {
		return finding{Severity: warning, What: "is known to its clients under a different list of addresses",
			Do: "Until all clients have the same list, two of them may hold one lock. If the same masters have several addresses, give every client the same --group."}
	}
	return finding{}
}

// evicts is S24b: no guard notices that a key was evicted.
func evicts(f facts) finding {
	switch {
	case f.Policy == "" || f.Policy == "noeviction":
		return finding{}
	case f.MaxMemory > 0:
		return finding{Severity: critical, What: "evicts keys when its memory is full (maxmemory-policy " + cli.Plain(f.Policy) + ")",
			Do: "Set maxmemory-policy noeviction: a lock that is evicted can be taken by another client."}
	}
	return finding{Severity: note, What: "would evict keys if it had a maxmemory (maxmemory-policy " + cli.Plain(f.Policy) + ")",
		Do: "Set maxmemory-policy noeviction before you set maxmemory."}
}

func full(f facts) finding {
	switch {
	case f.MaxMemory <= 0 || f.UsedMemory < f.MaxMemory/10*9:
		return finding{}
	case f.refuses() == "OOM":
		return finding{Severity: warning, What: "is full, so that it grants no locks (OOM)",
			Do: "Raise maxmemory, or find out what fills it."}
	}
	return finding{Severity: warning, What: fmt.Sprintf("%d %% of its memory is used", 100*f.UsedMemory/f.MaxMemory),
		Do: "A master that is full refuses to grant locks: raise maxmemory, or find out what fills it."}
}

func diskTrouble(f facts) finding {
	if f.Trouble == "" {
		return finding{}
	}
	return finding{Severity: warning, What: "its last write to disk failed (" + f.Trouble + ")",
		Do: "It may refuse writes (MISCONF) and forget locks when it restarts: look at its log and its disk."}
}

func alone(f facts) finding {
	if f.refuses() != "NOREPLICAS" {
		return finding{}
	}
	return finding{Severity: warning, What: fmt.Sprintf("has %d of the replicas that it needs to grant locks (NOREPLICAS)", f.InSync),
		Do: "Set min-replicas-to-write 0: replicas make no lock safer."}
}

func unmarked(f facts) finding {
	if !f.NoMarker {
		return finding{}
	}
	return finding{Severity: warning, What: "its redlock:marker is not a marker of ours, so that it votes for no new client for a restart guard",
		Do: "Find out who wrote that key, and delete it."}
}

// refuses returns the error with which the master answers whoever asks for a lock; empty: none.
func (f facts) refuses() string {
	needs := number(f.MinReplicas)
	switch {
	case f.Error != "":
	case f.MaxMemory > 0 && f.UsedMemory >= f.MaxMemory && f.Policy == "noeviction":
		return "OOM"
	case f.Trouble == "aof_last_write_status", f.Trouble != "" && f.Save != "" && f.StopWrites != "no":
		return "MISCONF"
	case needs > 0 && f.InSync >= 0 && f.InSync < needs:
		return "NOREPLICAS"
	}
	return ""
}

// agreement is how far a clock may differ from ours without a finding. It is also how far the
// clocks of masters may differ for a new client that finds nothing written of them: a master
// that is further ahead of most others is quarantined by it.
const agreement = time.Second

func clockOff(f facts) finding {
	off := time.Duration(f.ClockOffset).Abs()
	if f.ClockError <= 0 || off-time.Duration(f.ClockError) <= agreement {
		return finding{}
	}
	direction, costs := "ahead of", "A client that finds nothing written of it keeps it from voting for a restart guard."
	if f.ClockOffset < 0 {
		direction, costs = "behind", "To be set forward will keep it from voting for a restart guard."
	}
	return finding{Severity: warning, What: fmt.Sprintf("its clock is %v %s ours", off.Round(10*time.Millisecond), direction),
		Do: costs + " Slew it (chrony, ntpd), if it is not our clock that is wrong."}
}

func denied(f facts) finding {
	if len(f.Denied) == 0 {
		return finding{}
	}
	return finding{Severity: critical, What: "refuses " + cli.Plain(missing(f.Denied)) + " (NOPERM)",
		Do: "Give the user the rights that docs/permissions.md lists."}
}

// missing lists rights: those to commands, those to keys, and those to channels.
func missing(rights []string) string {
	var commands, keys, channels []string
	for _, right := range rights {
		if name, ok := strings.CutPrefix(right, theKeys); ok {
			keys = append(keys, name)
		} else if name, ok := strings.CutPrefix(right, theChannels); ok {
			channels = append(channels, name)
		} else {
			commands = append(commands, right)
		}
	}
	var said []string
	for _, one := range []struct {
		of    string
		names []string
	}{{"", commands}, {theKeys, keys}, {theChannels, channels}} {
		if len(one.names) > 0 {
			said = append(said, one.of+cli.Enumerated(one.names))
		}
	}
	return strings.Join(said, "; ")
}

func limited(f facts) finding {
	if len(f.Limited) == 0 {
		return finding{}
	}
	return finding{Severity: warning, What: "refuses " + cli.Plain(missing(f.Limited)) + " (NOPERM)",
		Do: "docs/permissions.md says what each is for: waiting is slower without some, others feed the guards."}
}

func persistence(f facts) finding {
	switch {
	case f.AppendOnly == "" || f.AppendOnly == "yes" && f.AppendFsync == "always":
		return finding{}
	case f.AppendOnly == "yes":
		return finding{Severity: note, What: "may forget the last second when it crashes (appendfsync " + cli.Plain(f.AppendFsync) + ")",
			Do: "It does not vote for a TTL after a restart. appendfsync always spares clients of the Go library that, with WithDurableNodes."}
	}
	return finding{Severity: note, What: "forgets locks when it restarts (appendonly no)",
		Do: "It does not vote for a TTL after a restart. If that costs clients of the Go library too much: appendonly yes, appendfsync always, and WithDurableNodes."}
}

func replicas(f facts) finding {
	if f.Replicas <= 0 {
		return finding{}
	}
	return finding{Severity: note, What: "has replicas",
		Do: "They make no lock safer: a promoted replica sits out a TTL like any master that forgot its keys. Let nothing fail over by itself."}
}

func unseen(f facts) finding {
	if len(f.Unseen) == 0 {
		return finding{}
	}
	return finding{Severity: note, What: "does not answer " + strings.Join(f.Unseen, ", "),
		Do: "Managed services hide some of this. What depends on it was not looked at."}
}

func quarantined(f facts) finding {
	if f.Quarantine <= 0 {
		return finding{}
	}
	return finding{Severity: note, What: "must not grant locks yet: " + f.Forgot,
		Do: f.trace.votes(time.Duration(f.Quarantine))}
}

func slow(f facts, nodeTimeout time.Duration) finding {
	p99 := time.Duration(f.P99)
	if p99 <= nodeTimeout/2 {
		return finding{}
	}
	return finding{Severity: warning, What: fmt.Sprintf("one answer in a hundred takes %s or more", brief(p99)),
		Do: fmt.Sprintf("The node timeout is %v: answers that come later do not count. Raise it (WithNodeTimeout, --node-timeout).", nodeTimeout)}
}

// lacking finds what too few of the masters do for a quorum: nothing, or the worst of it.
func lacking(all []facts, nodes []string) []finding {
	answered, voting, storing, granting := 0, 0, 0, 0
	for _, f := range all {
		if f.Error != "" {
			continue
		}
		answered++
		votes, stores := f.Quarantine == 0 && !f.NoMarker, f.refuses() == ""
		if votes {
			voting++
		}
		if stores {
			storing++
		}
		if votes && stores {
			granting++
		}
	}
	need := quorum.Size(len(all))
	for _, of := range []struct {
		masters  int
		do       string
		severity severity
		then     string
	}{
		{answered, "answer", critical, "They grant no lock."},
		{storing, "store locks", critical, "They grant no lock."},
		{voting, "vote", warning, "They grant no new lock until more of them do."},
		{granting, "vote and store locks", warning, "They grant no new lock until more of them do."},
	} {
		if of.masters < need {
			return []finding{{of.severity, nodes, fmt.Sprintf("only %d of %d %s, %d are needed", of.masters, len(all), of.do, need), of.then}}
		}
	}
	return nil
}

// together are the findings about all masters.
func together(all []facts) []finding {
	nodes := make([]string, len(all))
	servers, groups := map[string][]string{}, map[string]bool{}
	for i, f := range all {
		nodes[i] = f.Node
		if f.Group != "" {
			groups[f.Group] = true
		}
		if f.RunID != "" {
			servers[f.RunID] = append(servers[f.RunID], f.Node)
		}
	}
	found := lacking(all, nodes)
	if len(groups) > 1 {
		found = append(found, finding{critical, nodes, "do not belong to one group",
			"Some clients have another list of masters than others: give all of them the same, or use redlock init --regroup."})
	}
	for _, f := range all {
		if same := servers[f.RunID]; f.RunID != "" && len(same) > 1 && same[0] == f.Node {
			found = append(found, finding{critical, same, "are the same server (run_id " + f.RunID[:min(8, len(f.RunID))] + ")",
				"A server that votes twice makes a quorum of its own: list it once."})
		}
	}
	switch {
	case len(all) == 1:
		found = append(found, finding{note, nodes, "the only master: there are no locks without it", "Three survive the loss of one, five of two."})
	case len(all) < 3:
		found = append(found, finding{note, nodes, fmt.Sprintf("%d masters survive the loss of none", len(all)), "Three survive the loss of one, five of two."})
	case len(all)%2 == 0:
		found = append(found, finding{note, nodes, "an even number of masters", fmt.Sprintf("%d survive the loss of no more than %d do.", len(all), len(all)-1)})
	}
	return found
}
