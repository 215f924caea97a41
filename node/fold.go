package node

// fold is several releases that wait for the same write, sent as one call of
// one script: a master spends most of a release on taking and answering the
// request.
//
// It leaves behind whatever else is written with it, which is not what the
// callers asked for, but only what is said about the same key has an order.
type fold struct {
	cmd     Command
	orders  []string // and entries: the queues of the releases in cmd; its last keys, once it is complete
	entries []string
	calls   []call
}

func newFold() *fold { return &fold{cmd: Command{Op: OpRelease, Script: scriptReleases}} }

// maxFold bounds for how long one call keeps a master busy.
const maxFold = 32

// folds reports whether k can be part of a fold.
func folds(k call) bool {
	return k.cmd.Script == ScriptRelease && k.by == byHash && len(k.cmd.Args) == 1
}

// concerns reports whether a release in the fold is about one of cmd's keys.
func (f *fold) concerns(cmd *Command) bool {
	return f != nil && (shareKey(f.cmd.Keys, cmd.Keys) || shareKey(f.orders, cmd.Keys))
}

// add takes one more release.
func (f *fold) add(k call) {
	f.calls = append(f.calls, k)
	f.cmd.Keys = append(f.cmd.Keys, k.cmd.Keys[0])
	f.orders = append(f.orders, k.cmd.Keys[1])
	f.entries = append(f.entries, k.cmd.Keys[2])
	f.cmd.Args = append(f.cmd.Args, k.cmd.Args[0])
}

// complete returns the command that makes all the releases.
func (f *fold) complete() *Command {
	f.cmd.Keys = append(f.cmd.Keys, f.orders...)
	f.cmd.Keys = append(f.cmd.Keys, f.entries...)
	f.cmd.Keys = append(f.cmd.Keys, f.calls[0].cmd.Keys[3])
	return &f.cmd
}

// reset empties the fold for its next use.
func (f *fold) reset() {
	clear(f.calls)
	clear(f.orders)
	clear(f.entries)
	clear(f.cmd.Keys)
	clear(f.cmd.Args)
	f.calls, f.orders, f.entries = f.calls[:0], f.orders[:0], f.entries[:0]
	f.cmd.Keys, f.cmd.Args = f.cmd.Keys[:0], f.cmd.Args[:0]
}

// foldIn adds a release to the fold that is being gathered. The mutex is held.
func (c *conn) foldIn(k call) {
	if c.gathering == nil {
		if n := len(c.spare); n > 0 {
			c.gathering, c.spare = c.spare[n-1], c.spare[:n-1]
		} else {
			c.gathering = newFold()
		}
	}
	c.gathering.add(k)
	if len(c.gathering.calls) == maxFold {
		c.closeFold()
	}
}

// closeFold puts what was gathered behind what is to be written. The mutex is
// held.
func (c *conn) closeFold() {
	f := c.gathering
	if f == nil {
		return
	}
	c.gathering = nil
	if len(f.calls) == 1 {
		k := f.calls[0]
		c.put(k)
		c.recycle(f)
		return
	}
	c.put(call{cmd: f.complete(), folded: f})
}

// closeGathering ends the fold that is being gathered, so that it goes before
// what is given later.
func (c *conn) closeGathering() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeFold()
}

// maxSpare is how many folds are kept for reuse.
const maxSpare = 8

func (c *conn) recycle(f *fold) {
	if len(c.spare) < maxSpare {
		f.reset()
		c.spare = append(c.spare, f)
	}
}

// unfold settles the releases of a fold, each by its own answer. An error that
// it returns ends the connection.
func (c *conn) unfold(f *fold, value any, refusal *ServerError) error {
	answers, _ := value.([]any)
	var fatal error
	for i, k := range f.calls {
		switch {
		case refusal != nil:
			fatal = firstError(fatal, c.refused(k, refusal))
		case i < len(answers):
			fatal = firstError(fatal, c.answered(k, answers[i]))
		default:
			fatal = errNotAsked
			c.settle(k, Reply{Err: &Error{Node: c.addr, Op: OpRelease, Err: ErrUnknown}})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if refusal != nil && refusal.Code == "NOSCRIPT" {
		c.load(scriptReleases) // or every fold to come would be refused, too
	}
	c.recycle(f)
	return fatal
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
