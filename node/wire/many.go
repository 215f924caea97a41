package wire

import "strconv"

// MaxFold bounds for how long one call keeps a master busy.
const MaxFold = 32

// ManyTimes returns the script that makes several calls of s, or nil.
func ManyTimes(s *Script) *Script {
	switch s {
	case ScriptRelease:
		return ScriptReleases
	case ScriptFencedAcquire:
		return scriptFencedAcquires
	case ScriptFair:
		return ScriptFairs
	case ScriptWrite:
		return scriptWrites
	case ScriptRead:
		return scriptReads
	case ScriptRWRelease:
		return scriptRWReleases
	case ScriptPermit:
		return scriptPermitTakes
	case ScriptPermitRelease:
		return scriptPermitReleases
	}
	return nil
}

// InColumns reports whether a script takes the first key of each call, then the
// second of each, and so on. Otherwise it takes one call after the other.
func InColumns(many *Script) bool { return many == ScriptReleases || many == scriptFencedAcquires }

// Unfold returns the calls that a folded call is made of, for a stand-in for a master;
// nil if it is one call.
func Unfold(cmd *Command) []*Command {
	for _, one := range Scripts {
		if cmd.Script != nil && ManyTimes(one) == cmd.Script {
			return unfold(cmd, one)
		}
	}
	return nil
}

func unfold(cmd *Command, one *Script) (calls []*Command) {
	if InColumns(cmd.Script) {
		return unfoldColumns(cmd, one)
	}
	last := len(cmd.Args) - 1
	n, _ := strconv.Atoi(cmd.Args[last])
	keys, args := len(cmd.Keys)/n, last/n
	for i := range n {
		calls = append(calls, &Command{
			Op: cmd.Op, Script: one, Keys: cmd.Keys[i*keys : (i+1)*keys], Args: cmd.Args[i*args : (i+1)*args],
		})
	}
	return calls
}

func unfoldColumns(cmd *Command, one *Script) (calls []*Command) {
	n := len(cmd.Keys) / 2
	for i := range n {
		call := &Command{Op: cmd.Op, Script: one, Keys: []string{cmd.Keys[i], cmd.Keys[n+i]}}
		for at := i; at < len(cmd.Args); at += n {
			call.Args = append(call.Args, cmd.Args[at])
		}
		if one == ScriptRelease {
			marker := cmd.Keys[2*n]
			call.Keys = append(call.Keys, besideQueue(call.Keys[1], marker, "wait:"), marker)
		}
		calls = append(calls, call)
	}
	return calls
}
