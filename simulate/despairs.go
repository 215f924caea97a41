package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// sized notes what a master has answered to an ask for permits, where it has another
// number of them: of such a number no quorum can give any.
func (c *client) sized(master int, cmd *wire.Command, r wire.Reply) {
	if cmd.Script != wire.ScriptPermit || c.preemption.every > 0 || c.config.unsafe != (seam.Unsafe{}) {
		return
	}
	value := cmd.Args[0]
	var refusal *wire.ServerError
	switch {
	case r.Err == nil:
		c.otherwise[value] &^= quorum.Only(master)
	case errors.As(r.Err, &refusal) && refusal.Code == "PERMITS" && !cmd.Again:
		c.otherwise[value] |= quorum.Only(master)
	}
	if cmd.Op == wire.OpAsk && len(c.masters)-c.otherwise[value].Len() < quorum.Size(len(c.masters)) {
		c.hopeless(cmd)
	}
}

// hopeless notes who waits for permits of a number that no quorum has. Of several callers
// it is not known whose ask it was.
func (c *client) hopeless(cmd *wire.Command) {
	var who *want
	for _, w := range c.check.wants {
		if w.process.client != c || w.names[0] != strings.TrimPrefix(cmd.Keys[0], "redlock:slots:") {
			continue
		}
		if who != nil {
			return
		}
		who = w
	}
	if total, _ := strconv.Atoi(cmd.Args[3]); who != nil && who.permits == total && who.hopeless == 0 {
		who.hopeless = c.world.now
	}
}

// despairs reports a caller that goes on waiting when it was told that there is another
// number of permits.
func (k *checker) despairs(w *want) {
	c := w.process.client
	if w.hopeless == 0 || w.told || c.closing || c.host.down || c.host.hangs() {
		return
	}
	if late := k.trial.world.now - max(w.hopeless, c.host.resumed); late > punctual {
		w.told = true
		k.report(Violation{
			Kind:    FreeAndWanted,
			What:    fmt.Sprintf("%s waits for one of %d permits of %q, and no quorum has so many, as it was told %v ago", w.process.name, w.permits, w.names[0], short(late)),
			Clients: []int{c.index},
		})
	}
}
