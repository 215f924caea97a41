package node

import (
	"slices"
	"strconv"

	"github.com/quorumlock/quorumlock/node/wire"
)

// fold is several calls of one script that wait for the same write, sent as one call
// of another script: a master spends most of its time on taking and answering
// requests.
//
// A fold comes after everything else that is written with it, which is not the order
// in which the callers asked. But only commands about the same lock have an order. So
// no two folds that are gathered have a lock in common.
type fold struct {
	cmd   wire.Command
	args  int // how many arguments each call has
	calls []call
	locks sieve // of the calls

	// Of a script that takes the locks of all calls and then the second key of each:
	// the keys and the arguments that follow the locks and the values once the fold
	// is complete.
	moreKeys []string
	moreArgs [2][]string
}

// foldsInto returns the script of the folds that k can be part of, or nil. Each call
// decides by itself whether its master is to be held.
func foldsInto(k *call) *wire.Script {
	cmd := k.cmd
	last := len(cmd.Args) - 1
	if cmd.Script == nil || k.by != wire.ByHash || k.alone || cmd.Op != wire.OpAcquire && cmd.Op != wire.OpRelease || last > 0 && cmd.Args[last] == wire.HoldArg {
		return nil
	}
	if cmd.MayKeep() {
		return nil
	}
	return cmd.Script.Many()
}

// concerns reports whether a call of the fold is about a lock of cmd. A call's
// first key is its lock, which each command about that lock has among its keys.
func (f *fold) concerns(cmd *wire.Command) bool {
	keys := cmd.Keys
	if len(keys) > 1 && cmd.Script.Many() != nil {
		keys = keys[:1]
	}
	for _, key := range keys {
		if f.locks.mayHave(key) && f.has(key) {
			return true
		}
	}
	return false
}

// has reports whether a call of the fold is about that lock.
func (f *fold) has(lock string) bool {
	for i := range f.calls {
		if f.calls[i].cmd.Keys[0] == lock {
			return true
		}
	}
	return false
}

// add takes one more call.
func (f *fold) add(k *call) {
	f.calls = append(f.calls, *k)
	f.locks.add(k.cmd.Keys[0])
	keys, args := k.cmd.Keys, k.cmd.Args
	if !f.cmd.Script.InColumns() {
		f.cmd.Keys = append(f.cmd.Keys, keys...)
		f.cmd.Args = append(f.cmd.Args, args...)
		return
	}
	f.cmd.Keys, f.cmd.Args = append(f.cmd.Keys, keys[0]), append(f.cmd.Args, args[0])
	f.moreKeys = append(f.moreKeys, keys[1])
	for i := range len(args) - 1 {
		f.moreArgs[i] = append(f.moreArgs[i], args[1+i])
	}
}

// complete returns the command that makes all the calls.
func (f *fold) complete() *wire.Command {
	if !f.cmd.Script.InColumns() {
		f.cmd.Args = append(f.cmd.Args, strconv.Itoa(len(f.calls)))
		return &f.cmd
	}
	f.cmd.Keys = append(f.cmd.Keys, f.moreKeys...)
	for i := range f.moreArgs {
		f.cmd.Args = append(f.cmd.Args, f.moreArgs[i]...)
	}
	if f.cmd.Script == wire.ScriptReleases {
		f.cmd.Keys = append(f.cmd.Keys, f.calls[0].cmd.Keys[3]) // the marker
	}
	return &f.cmd
}

// begin makes an empty fold one of calls like cmd.
func (f *fold) begin(script *wire.Script, cmd *wire.Command) *fold {
	f.cmd.Op, f.cmd.Script, f.args = cmd.Op, script, len(cmd.Args)
	return f
}

// reset empties the fold for its next use.
func (f *fold) reset() {
	clear(f.calls)
	f.calls, f.locks = f.calls[:0], sieve{}
	for i := range f.moreArgs {
		f.moreArgs[i] = emptied(f.moreArgs[i])
	}
	f.moreKeys, f.cmd.Keys, f.cmd.Args = emptied(f.moreKeys), emptied(f.cmd.Keys), emptied(f.cmd.Args)
}

func emptied(s []string) []string {
	clear(s)
	return s[:0]
}

// foldIn adds a call to the fold of that script that is being gathered. The mutex
// is held. Releases are made together and not in turn, so a release of a lock that is
// already in their fold does not join it.
func (c *conn) foldIn(k *call, script *wire.Script) {
	joins := func(f *fold) bool { return f.cmd.Script == script && f.args == len(k.cmd.Args) }
	if c.folds.concern(k.cmd) {
		c.closeFolds(func(f *fold) bool { return f.concerns(k.cmd) && (!joins(f) || script == wire.ScriptReleases) })
	}
	i := slices.IndexFunc(c.folds.gathering, joins)
	if i < 0 {
		i = len(c.folds.gathering)
		c.folds.gathering = append(c.folds.gathering, c.folds.take().begin(script, k.cmd))
	}
	f := c.folds.gathering[i]
	f.add(k)
	if len(f.calls) == wire.MaxFold {
		c.closeFolds(joins)
	}
}

// closeFolds puts the commands of some folds behind the bytes to be written.
// The mutex is held.
func (c *conn) closeFolds(which func(*fold) bool) {
	if len(c.folds.gathering) == 0 {
		return
	}
	c.folds.gathering = slices.DeleteFunc(c.folds.gathering, func(f *fold) bool {
		if !which(f) {
			return false
		}
		c.close(f)
		return true
	})
}

func (c *conn) close(f *fold) {
	if len(f.calls) == 1 {
		c.put(&f.calls[0])
		c.folds.recycle(f)
		return
	}
	c.put(&call{cmd: f.complete(), folded: f})
}

func everyFold(*fold) bool { return true }

// closeGathering ends the folds that are being gathered, so that they go before
// later commands.
func (c *conn) closeGathering() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeFolds(everyFold)
}

// unfold settles the calls of a fold, each by its own answer. An error that it
// returns ends the connection.
func (c *conn) unfold(whole *call, value any, refusal *wire.ServerError) error {
	f := whole.folded
	var fatal error
	for i := range f.calls {
		k := &f.calls[i]
		k.held = whole.held
		answer, ok := f.answer(value, i)
		switch {
		case refusal != nil && refusal.Code == "NOPERM" && c.alone(k):
			// The user may not use some lock, perhaps another one.
		case refusal != nil:
			fatal = firstError(fatal, c.refused(k, refusal))
		case ok:
			fatal = firstError(fatal, c.answered(k, answer))
		default:
			fatal = errNotAsked
			c.settle(*k, wire.Reply{Err: &wire.Error{Node: c.addr, Op: k.cmd.Op, Err: ErrUnknown}})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if refusal != nil && refusal.Code == "NOSCRIPT" {
		c.load(f.cmd.Script) // or every fold to come would be refused, too
	}
	c.folds.recycle(f)
	return fatal
}

// answer finds the answer to call i in what the master said: one for each call, or how
// many releases there are if all of them have deleted their lock.
func (f *fold) answer(value any, i int) (any, bool) {
	if f.cmd.Script == wire.ScriptReleases && value == int64(len(f.calls)) {
		return int64(1), true
	}
	answers, _ := value.([]any)
	if i < len(answers) {
		return answers[i], true
	}
	return nil, false
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// folds are those of a connection.
type folds struct {
	gathering []*fold // for the next write
	spare     []*fold // to be used again
}

// maxSpare is how many folds are kept for reuse.
const maxSpare = 8

// concern reports whether a fold that is being gathered concerns cmd.
func (s *folds) concern(cmd *wire.Command) bool {
	for _, f := range s.gathering {
		if f.concerns(cmd) {
			return true
		}
	}
	return false
}

// take returns an empty fold.
func (s *folds) take() *fold {
	n := len(s.spare)
	if n == 0 {
		return new(fold)
	}
	f := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return f
}

func (s *folds) recycle(f *fold) {
	if len(s.spare) < maxSpare {
		f.reset()
		s.spare = append(s.spare, f)
	}
}
