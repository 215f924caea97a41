package wire

import "strconv"

// MaxFold bounds for how long one call keeps a master busy.
const MaxFold = 32

// Many returns the script that makes several calls of s, or nil.
func (s *Script) Many() *Script {
	if s == nil {
		return nil
	}
	return s.many
}

// InColumns reports whether a script of several calls takes the first key of each call,
// then the second of each, and so on. Otherwise it takes one call after the other.
func (s *Script) InColumns() bool { return s.columns }

// Unfold returns the calls that a folded call is made of, for a stand-in for a master;
// nil if it is one call.
func Unfold(cmd *Command) []*Command {
	switch s := cmd.Script; {
	case s == nil || s.one == nil:
		return nil
	case s.columns:
		return unfoldColumns(cmd, s.one)
	default:
		return unfoldInTurn(cmd, s.one)
	}
}

func unfoldInTurn(cmd *Command, one *Script) (calls []*Command) {
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
