package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/spread"
)

// mapped are the findings about the map that spreads names over groups of masters (S83). The masters are
// given by their groups if grouped, and are all groups if whole.
func mapped(all []facts, grouped, whole bool) []finding {
	told, tell := newestTold(all)
	text := told.String()
	switch {
	case told.Number == 0 && !grouped:
		return nil
	case told.Number == 0:
		return []finding{{critical, nodesOf(all), "tell no map of groups", "No client with WithSpread gets a lock: run redlock groups apply."}}
	case !grouped:
		return []finding{{critical, tell, "spread names over several groups (map " + text + ")",
			"They refuse every client that does not (WithSpread). Give all groups in --nodes: a=host:port,...,b=host:port,..."}}
	}
	var found []finding
	if len(tell) < len(all) {
		others := nodesOf(slices.DeleteFunc(slices.Clone(all), func(f facts) bool { return f.Error != "" || slices.Contains(tell, f.Node) }))
		if len(others) > 0 {
			found = append(found, finding{warning, others, "do not tell the newest map, " + text,
				"Clients tell them. If none does: redlock groups apply --over " + over(told) + "."})
		}
	}
	if !told.Settled() {
		found = append(found, finding{warning, tell, fmt.Sprintf("tell that names move (map %s), and nobody gets these", text),
			"If no redlock groups apply is under way, it was not ended: run it again, --over " + over(told) + "."})
	}
	if whole {
		found = append(found, others(all, told, tell)...)
	}
	return found
}

// others are the findings about groups that only the map names, or only --nodes.
func others(all []facts, told spread.Map, tell []string) (found []finding) {
	given := checkup{Masters: all}.groups()
	named := slices.Compact(slices.Sorted(slices.Values(slices.Concat(told.Groups, told.Next))))
	missing := slices.DeleteFunc(slices.Clone(named), func(group string) bool { return slices.Contains(given, group) })
	if len(missing) > 0 {
		found = append(found, finding{warning, tell, fmt.Sprintf("tell a map, %s, with groups that --nodes does not give: %s", told, cli.Enumerated(missing)),
			"They were not looked at, and clients need them, too: add them to --nodes."})
	}
	for _, group := range given {
		if !slices.Contains(named, group) {
			found = append(found, finding{note, checkup{Masters: all}.of(group), "have no names (map " + told.String() + ")",
				"Give the group some, redlock groups apply, or leave it out."})
		}
	}
	return found
}

// newestTold is the newest map, and the masters that tell it.
func newestTold(all []facts) (newest spread.Map, tell []string) {
	for _, f := range all {
		m, err := spread.Parse(f.group.Map)
		if err == nil && m.Newer(newest) {
			newest, tell = m, nil
		}
		if err == nil && m.Number > 0 && m.String() == newest.String() {
			tell = append(tell, f.Node)
		}
	}
	return newest, tell
}

// over is the --over that ends with the groups of the map.
func over(m spread.Map) string {
	if m.Settled() {
		return strings.Join(m.Groups, ",")
	}
	return strings.Join(m.Next, ",")
}

func nodesOf(all []facts) (nodes []string) {
	for _, f := range all {
		nodes = append(nodes, f.Node)
	}
	return nodes
}
