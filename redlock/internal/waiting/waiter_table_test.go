package waiting

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// The table of a waiter: what each event does in each state, without masters, goroutines
// and clocks. A row is a list of events, each with the state after it and its effects.
//
// Masters are letters. An answer is a letter and + (granted), - (refused), = (refused by
// another library's client), . (refused, for a second), ~ (without an answer), ? (an answer to
// another question) or ! (failed for want of rights); a number behind it is the waiter's place there.
var waiterTable = map[string][]string{
	"one ask is granted by a majority": {
		"first -> asking: stop, ask w1:0",
		"over -> asking:",
		"decided A+ B+ -> won: wake",
		"woke -> taking:",
		"leased -> finished: wake, stop",
	},
	"messages bring what was refused, and another master's is not needed": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"grants A -> resting: timer 1ms<=10.001s",
		"grants A -> resting:",
		"grants C -> won: wake",
		"grants B -> won:",
		"missed B -> won:",
		"timer -> won:",
		"woke -> taking:",
		"notifies B -> taking:",
		"leased -> finished: wake, stop",
		"grants B -> finished:",
	},
	"messages win before the decision, which is noted later": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"grants A -> asking:",
		"grants B -> won: wake",
		"woke -> taking:",
		"decided C- -> taking:",
		"undone -> asking: stop, ask w1:1",
	},
	"a grant in a message counts although the master had refused before": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"grants A -> asking:",
		"decided A- B- C- -> resting: waits, timer 250µs<=10.001s",
		"grants B -> won: wake",
	},
	"what was won and came to nothing counts no more, and the next ask waits for the decision": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"grants A -> asking:", "grants B -> won: wake", "woke -> taking:",
		"undone -> asking:",
		"grants C -> asking:",
		"decided A+ B+ C+ -> asking: stop, ask w1:1",
	},
	"an error that does not pass ends it when it comes with the lease, too": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A+ B+ -> won: wake", "woke -> taking:",
		"undone for good -> finished: forget w1:0, wake, stop",
		"left -> finished: wake, stop",
	},
	"an ask that is being handed over wakes nobody until it is": {
		"first -> asking: stop, ask w1:0",
		"decided A+ B+ -> won:",
		"woke -> won:",
		"over -> won: wake",
		"woke -> taking:",
	},
	"only the last ask counts": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"timer -> asking: stop, ask w1:1",
		"old grants A -> asking:",
		"old decided A+ B+ -> asking:",
		"old notifies A -> asking:", "old notifies B -> asking:",
		"old late A- -> asking:",
		"grants A -> asking:",
		"over -> asking:",
		"decided B- C- -> resting: timer 250µs<=10.001s",
		"old repeats B+ -> resting:",
		"grants B -> won: wake",
	},
	"an ask is sent when the one before is decided and handed over": {
		"first -> asking: stop, ask w1:0",
		"timer -> asking:",
		"decided A- B- C- -> resting: waits",
		"timer -> resting:",
		"over -> asking: stop, ask w1:1",
		"over -> asking:",
		"decided A- B- C- -> resting: timer 10s<=10.001s",
	},
	"an ask that is due when another is decided follows it": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"timer -> asking:",
		"decided A- B- C- -> asking: waits, stop, ask w1:1",
	},
	"a split vote is asked about again, each time later": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+1ms decided A+ B- C- -> resting: waits, timer 1ms<=10.001s",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"+1ms decided A+ B- C- -> resting: timer 2ms<=10.001s",
		"timer -> asking: stop, ask w1:2", "over -> asking:",
		"+1ms decided A+ B- C- -> resting: timer 4ms<=10.001s",
		"timer -> asking: stop, ask w1:3", "over -> asking:",
		"+1ms decided A- B- C- -> resting: timer 10s<=10.001s",
		"timer -> asking: stop, ask w1:4", "over -> asking:",
		"+1ms decided A+ B- C- -> resting: timer 1ms<=10.001s",
	},
	"a master that hangs does not make the pauses about a split longer (L80)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+1ms decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"+500ms decided A+ B- C~ -> resting: timer 1ms<=10.001s",
		"timer -> asking: stop, ask w1:2", "over -> asking:",
		"+500ms decided A+ B- C~ -> resting: timer 2ms<=10.001s",
	},
	"an answer that once took long makes pauses about a split no longer when they are quick again (L80)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+500ms decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"+1ms decided A+ B- C% -> resting: timer 1ms<=10.001s",
	},
	"a minority that comes late splits, too": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+1ms decided A+ B- C- -> resting: waits, timer 1ms<=10.001s",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"+1ms decided A- B- C- -> resting: timer 10s<=10.001s",
		"+2s grants A -> resting: timer 4ms<=8.001s",
		"timer -> asking: stop, ask w1:2", "over -> asking:",
		"+1ms decided A+ B- C- -> resting: timer 4ms<=10.001s",
		"timer -> asking: stop, ask w1:3", "over -> asking:",
		"+1ms decided A- B- C- -> resting: timer 10s<=10.001s",
		"grants A -> resting: timer 16ms<=10.001s",
	},
	"without a quorum it gives up its ask, and asks less and less often": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A+ B~ C~ -> resting: waits, forget w1:0, timer 100ms",
		"grants A -> resting:", "missed A -> resting:",
		"timer -> asking: stop, ask w2:0", "over -> asking:",
		"decided A- B~ C~ -> resting: forget w2:0, timer 200ms",
		"late B- -> resting:",
		"timer -> asking: stop, ask w3:0", "over -> asking:",
		"decided A- B- C~ -> resting: timer 10s<=10.001s",
		"timer -> asking: stop, ask w3:1", "over -> asking:",
		"decided A~ B- C~ -> resting: forget w3:1, timer 100ms",
	},
	"what is given up while it is handed over is forgotten afterwards": {
		"first -> asking: stop, ask w1:0",
		"decided A+ B~ C~ -> resting: waits, timer 100ms",
		"timer -> resting:",
		"over -> asking: forget w1:0, stop, ask w2:0",
	},
	"another library's client sends no messages": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A= B- C- -> resting: waits, timer 100ms<=10.001s",
	},
	"one whom no master lets queue polls": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A! B! C+ -> resting: waits, barred, forget w1:0, timer 100ms",
		"timer -> asking: stop, ask w2:0 polls", "over -> asking:",
		"missed A -> asking:",
		"decided A- B- C+ -> resting: forget w2:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w3:0 polls", "over -> asking:",
		"decided A+ B+ -> won: wake",
	},
	"one whom no master lets queue wants to queue again after eight polls (L96)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A! B! C! -> resting: waits, barred, forget w1:0, timer 100ms",
		"timer -> asking: stop, ask w2:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w2:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w3:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w3:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w4:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w4:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w5:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w5:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w6:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w6:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w7:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w7:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w8:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w8:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w9:0 polls", "over -> asking:", "decided A- B- C- -> resting: forget w9:0, timer 100ms<=10.001s",
		"timer -> asking: stop, ask w10:0", "over -> asking:",
		"decided A! B! C! -> resting: forget w10:0, timer 100ms",
		"timer -> asking: stop, ask w11:0 polls",
	},
	"one whom no quorum lets queue, as the last answer shows, polls (L96)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A! B- -> resting: waits, timer 10s<=10.001s",
		"late C! -> resting: barred, forget w1:0, timer 100ms<=10.001s",
		"late C! -> resting:",
		"timer -> asking: stop, ask w2:0 polls",
	},
	"one whom a minority does not let queue queues": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A! B- C+ -> resting: waits, timer 250µs<=10.001s",
	},
	"a caller that polls looks less and less often": {
		"polling -> parked:",
		"first -> asking: stop, ask w1:0 polls", "over -> asking:",
		"decided A- B- C- -> resting: waits, forget w1:0, timer 1s<=10.001s",
		"timer -> asking: stop, ask w2:0 polls", "over -> asking:",
		"decided A- B- C- -> resting: forget w2:0, timer 2s<=10.001s",
		"timer -> asking: stop, ask w3:0 polls", "over -> asking:",
		"decided A- B- C- -> resting: forget w3:0, timer 3s<=10.001s",
	},
	"one that nobody can notify polls after a while, and queues again": {
		"deaf -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=3s",
		"+2s timer -> asking: stop, ask w1:1", "over -> asking:",
		"decided A- B- C- -> resting: timer 10s<=3s",
		"+1s timer -> asking: deaf, forget w1:1, stop, ask w2:0 polls", "over -> asking:",
		"decided A- B- C- -> resting: forget w2:0, timer 100ms<=10.001s",
		"hears -> resting:",
		"timer -> asking: stop, ask w3:0", "over -> asking:",
		"decided A- B- C- -> resting: timer 10s<=10.001s",
		"deaf -> resting:",
		"timer -> asking: stop, ask w3:1",
	},
	"one that polls queues when it can be notified": {
		"deaf -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=3s",
		"+3s timer -> asking: deaf, forget w1:0, stop, ask w2:0 polls", "over -> asking:",
		"missed A -> asking:",
		"hears -> asking:",
		"missed B -> asking:",
		"decided A- B- C- -> asking: forget w2:0, stop, ask w3:0", "over -> asking:",
		"missed C -> asking: repeat C",
	},
	"a majority notifies": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+1ms decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"notifies A -> resting: timer 1ms",
		"notifies A -> resting:",
		"notifies C -> asking: stop, ask w1:1", "over -> asking:",
		"notifies A -> asking:",
		"notifies B -> asking:",
		"+1ms decided A- B- C- -> asking: stop, ask w1:2",
	},
	"a grant and a notification are a majority that may ask": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+1ms decided A+ B- C- -> resting: waits, timer 1ms<=10.001s",
		"notifies B -> asking: stop, ask w1:1",
	},
	"one that was notified while it asked asks again soon": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"notifies A -> asking:",
		"+1ms decided A- B- C- -> resting: waits, timer 1ms<=10.001s",
	},
	"a repeat is under way once, and once more if messages are missed meanwhile (L33)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"missed A -> asking: repeat A", "over -> asking:",
		"missed B -> asking: repeat B", "over -> asking:",
		"missed A -> asking:", "missed A -> asking:",
		"repeats A- -> asking: repeat A", "over -> asking:",
		"repeats A- -> asking:",
		"missed A -> asking: repeat A", "over -> asking:",
		"missed A -> asking:",
		"repeats A+ -> asking:",
		"repeats B+ -> won: wake",
	},
	"a repeat belongs to one ask (L31)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"missed A -> asking: repeat A", "over -> asking:",
		"missed A -> asking:",
		"old repeats A- -> asking:",
		"missed A -> asking:",
		"repeats A- -> asking: repeat A",
	},
	"a client that trusts no quorum any more gives up what the masters handed it (L95)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"missed B -> resting: repeat B", "over -> resting:",
		"repeats A% -> resting:",
		"old repeats C% -> resting:",
		"repeats B% -> resting: forget w1:0, timer 100ms",
		"timer -> asking: stop, ask w2:0",
	},
	"a master that hangs is no quorum with one that is trusted (L95)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C~ -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting: forget w1:0, timer 100ms",
	},
	"a repeat without an answer gives up nothing (L95)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C~ -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A~ -> resting:",
	},
	"a master that refuses a repeat is a quorum with one that is trusted, though it had failed (L95)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C~ -> resting: waits, timer 10s<=10.001s",
		"missed C -> resting: repeat C", "over -> resting:",
		"repeats C- -> resting:",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting:",
		"missed C -> resting: repeat C", "over -> resting:",
		"repeats C% -> resting: forget w1:0, timer 100ms",
	},
	"a waiter that has given up its place gives up nothing more (L95)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"missed A -> asking: repeat A", "over -> asking:",
		"decided A- B~ C~ -> resting: waits, forget w1:0, timer 100ms",
		"repeats A% -> resting:",
	},
	"a distrusted master is asked once more if its messages were missed meanwhile (L95)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C~ -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"missed A -> resting:",
		"repeats A% -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting: forget w1:0, timer 100ms",
	},
	"the grants that a waiter gives up are released behind the repeat (L32, L95)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C~ -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A",
		"repeats A% -> resting: timer 100ms",
		"over -> resting: forget w1:0",
	},
	"a master that a client distrusts is no loss if the others are a quorum, or the next ask is under way": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B% C- -> resting: waits, timer 10s<=10.001s",
		"missed B -> resting: repeat B", "over -> resting:",
		"repeats B% -> resting:",
		"missed C -> resting: repeat C", "over -> resting:",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"repeats C% -> asking:",
		"repeats A% -> asking:",
	},
	"nothing overtakes an ask that is being handed over (L32)": {
		"first -> asking: stop, ask w1:0",
		"missed A -> asking:", "missed C -> asking:",
		"timer -> asking:",
		"over -> asking: repeat AC",
		"decided A- B- C- -> resting: waits",
		"missed B -> resting:",
		"over -> asking: stop, ask w1:1",
		"over -> asking:",
	},
	"a caller that gives up has the masters forget, afterwards if need be": {
		"first -> asking: stop, ask w1:0",
		"left -> finished: wake, stop",
		"decided A+ B+ -> finished:",
		"missed A -> finished:",
		"over -> finished: forget w1:0",
		"timer -> finished:",
	},
	"a caller that gives up when it has won hands on what it was granted": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A+ B+ -> won: wake",
		"left -> finished: forget w1:0, wake, stop",
	},
	"one that waits behind others forgets nothing": {
		"left -> finished: wake, stop",
		"first -> finished:",
	},
	"Close ends every wait": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"close -> finished: forget w1:0, wake, stop",
		"left -> finished: wake, stop",
	},
	"Close leaves what is being taken to the lease, and ends the wait where it becomes none (L16)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A+ B+ -> won: wake", "woke -> taking:",
		"close -> taking: wake",
		"undone -> finished: forget w1:0, wake, stop",
	},
	"an attempt is followed by an ask": {
		"attempted -> parked:",
		"first -> asking: stop, ask w1:1",
	},
	"the pace of the client holds an ask back": {
		"crowd -> parked:",
		"first -> paced:",
		"timer -> paced:",
		"pace -> asking: stop, ask w1:0", "over -> asking:",
		"pace -> asking:",
		"decided A- B- C- -> resting: waits, timer 10s<=10.001s",
		"crowd -> resting:",
		"timer -> paced:",
		"grants A -> paced: timer 1ms<=10.001s",
		"late B- -> paced:",
		"grants B -> won: wake",
		"pace -> won:",
	},
	"a fair waiter agrees on the highest of its places": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B-9 C-7 -> asking: waits, stop, ask w1:1 at 9", "over -> asking:",
		"decided A- B- C- -> resting: timer 10s<=10.001s",
	},
	"a fair waiter whose places agree asks no more": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-9 B-9 C-7 -> resting: waits, timer 10s<=10.001s",
		"timer -> asking: stop, ask w1:1 at 9",
	},
	"a late answer says that enough keys end earlier (L67)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B. -> resting: waits, timer 10s<=10.001s",
		"late C. -> resting: timer 10s<=1.001s",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"decided A- B- -> resting: timer 10s<=10.001s",
		"late C- -> resting:",
	},
	"a late answer has no waiter sleep until after the end that was known (L67)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A. B- -> resting: waits, timer 10s<=10.001s",
		"+400ms late C. -> resting: timer 10s<=601ms",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"decided A. B- -> resting: timer 10s<=10.001s",
		"+9.5s late C. -> resting: timer 10s<=0s",
	},
	"a fair waiter of an even number of masters agrees by a late answer": {
		"four fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B-9 -> resting: waits, timer 10s<=10.001s",
		"late C-7 -> asking: stop, ask w1:1 at 9",
	},
	"a fair waiter agrees by a late grant (L25)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B~ C~ -> resting: waits, timer 100ms",
		"grants B -> asking: stop, ask w1:1 at 5",
	},
	"a fair waiter keeps its place although its masters answer late (L42c)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A~ B~ C~ -> resting: waits, timer 100ms",
		"timer -> asking: stop, ask w1:1",
	},
	"a fair waiter keeps no place where an answer leaves too few masters (L84)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A~ B? C? -> resting: waits, forget w1:0, timer 100ms",
	},
	"a fair waiter keeps no place where too few masters were asked (L84)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B? C/ -> resting: waits, forget w1:0, timer 100ms",
	},
	"a fair waiter keeps its place where its connection broke before the answer": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B? C^ -> resting: waits, timer 100ms",
	},
	"a fair waiter keeps its place where a master hangs (L42c)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- B? Cz -> resting: waits, timer 100ms",
	},
	"a fair waiter that is queued keeps its place where masters fail for a moment (L84)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B-5 -> resting: waits, timer 10s<=10.001s",
		"timer -> asking: stop, ask w1:1 at 5", "over -> asking:",
		"decided A? B? C? -> resting: timer 100ms",
		"timer -> asking: stop, ask w1:2 at 5", "over -> asking:",
		"decided A- B? C/ -> resting: timer 200ms",
		"timer -> asking: stop, ask w1:3 at 5", "over -> asking:",
		"decided A- B? C/ -> resting: timer 300ms",
		"timer -> asking: stop, ask w1:4 at 5", "over -> asking:",
		"decided A- B? C/ -> resting: timer 400ms",
		"timer -> asking: stop, ask w1:5 at 5", "over -> asking:",
		"decided A- B? C/ -> resting: forget w1:5, timer 500ms",
	},
	"a fair waiter that is queued keeps no place at masters that its client has ceased to trust (L95)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B-5 -> resting: waits, timer 10s<=10.001s",
		"timer -> asking: stop, ask w1:1 at 5", "over -> asking:",
		"decided A- B% C% -> resting: forget w1:1, timer 100ms",
		"timer -> asking: stop, ask w2:0 at 5", "over -> asking:",
		"decided A- B- C- -> resting: timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"missed B -> resting: repeat B", "over -> resting:",
		"repeats A% -> resting:",
		"repeats B% -> resting: forget w2:0, timer 100ms",
	},
	"a fair waiter keeps no place where too few masters may vote (L84)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A~ B% C% -> resting: waits, forget w1:0, timer 100ms",
	},
	"a fair waiter keeps its place where a master that hangs may give it the lock, though it trusts another no more (L84, L95)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B~ C-5 -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting: timer 100ms",
	},
	"a fair waiter that keeps its place asks again soon, however often a master answers that it trusts no more (L98)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B? C-5 -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting: timer 100ms",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting:",
		"grants C -> resting: timer 1ms<=10s",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting:",
		"timer -> asking: stop, ask w1:1 at 5",
	},
	"a waiter learns late that another master fails beside one that it trusts no more (L95, L98)": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A- C- -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting:",
		"late B? -> resting: forget w1:0, timer 100ms",
	},
	"a fair waiter with a grant of a master that it trusts no more asks again soon, however often that one answers (L98)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-5 B? C-5 -> resting: waits, timer 10s<=10.001s",
		"grants A -> resting: timer 1ms<=10.001s",
		"missed C -> resting: repeat C", "over -> resting:",
		"repeats C% -> resting: timer 100ms",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting:",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting:",
	},
	"no grant puts off the ask of a waiter without hope (L98)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+500ms decided A-5 B? C-5 -> resting: waits, timer 10s<=10.001s",
		"missed A -> resting: repeat A", "over -> resting:",
		"repeats A% -> resting: timer 100ms",
		"grants C -> resting: timer 100ms<=10s",
	},
	"a waiter with a minority waits for the one key that it lacks": {
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A+ B. C- -> resting: waits, timer 250µs<=1.001s",
	},
	"a fair waiter keeps its place where one answer leaves a quorum (L84)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A~ B~ C? -> resting: waits, timer 100ms",
	},
	"a fair waiter keeps its place where who has queued it leaves a quorum (L84)": {
		"fair -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A-1 B? C~ -> resting: waits, timer 100ms",
	},
	"a fair waiter keeps no place where an answer leaves a quorum that cannot notify it (L84)": {
		"fair -> parked:", "mute A -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A~ B~ C? -> resting: waits, forget w1:0, timer 100ms",
	},
	"a fair waiter that no quorum can notify keeps no place": {
		"fair -> parked:", "deaf -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A~ B~ C~ -> resting: waits, forget w1:0, timer 100ms",
	},
	"what does not pass ends the wait": {
		"permits -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided for good A~ B~ -> finished: forget w1:0, wake, stop",
		"left -> finished: wake, stop",
	},
	"what does not pass ends the wait when it is heard late, too": {
		"permits -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"decided A~ B~ -> resting: waits, forget w1:0, timer 100ms",
		"late C~ -> resting:",
		"late for good B~ -> finished: wake, stop",
	},
	"one of several locks that nobody else has all of asks again soon": {
		"several -> parked:",
		"first -> asking: stop, ask w1:0", "over -> asking:",
		"+1ms decided A- B- C~ -> resting: waits, timer 10s<=10.001s",
		"soon -> resting:",
		"late C- -> resting: timer 1ms<=10.001s",
		"late B- -> resting:",
		"timer -> asking: stop, ask w1:1", "over -> asking:",
		"+1ms decided A- B- C- -> resting: timer 1ms<=10.001s",
	},
}

func TestEvery_row_of_the_waiters_table(t *testing.T) {
	t.Parallel()
	for name, row := range waiterTable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(3)
			for i, line := range row {
				what, want, _ := strings.Cut(line, " -> ")
				if got := m.happens(what); got != want {
					t.Fatalf("%d. %s -> %s\n\twant %s\n\tafter %q", i+1, what, got, want, row[:i])
				}
			}
		})
	}
}

// What stood in the way of a waiter that has ended, and which votes it tells.
func TestA_waiter_tells_what_stood_in_its_way(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		events []string
		want   error
		votes  string
	}{
		{[]string{"left"}, nil, ""},
		{[]string{"first", "over", "decided A- B- C-", "left"}, ErrTaken, "---"},
		{[]string{"first", "over", "decided A- B- C~", "late C-", "left"}, ErrTaken, "---"},
		{[]string{"first", "over", "decided A- B~ C~", "left"}, ErrNoQuorum, "-~~"},
		{[]string{"first", "over", "decided A- B~ C~", "timer", "grants A", "left"}, ErrNoQuorum, "-~~"},
		{[]string{"first", "over", "decided A- B- C-", "timer", "grants A", "grants C", "left"}, errTooLate, "+.+"},
		{[]string{"first", "over", "decided A+ B+", "woke", "undone", "left"}, ErrExpired, "++."},
		{[]string{"first", "over", "decided A+ B+", "close", "left"}, errTooLate, "++."},
	} {
		m := newMachine(3)
		for _, what := range row.events {
			m.happens(what)
		}
		if got := m.failed; got != row.want {
			t.Errorf("%q: %v stood in the way, want %v", row.events, got, row.want)
		}
		if votes := signs(m.votes); votes != row.votes {
			t.Errorf("%q: votes %q, want %q", row.events, votes, row.votes)
		}
	}
}

// The votes are as old as the oldest grant, and no older than the ask (S35).
func TestAn_ask_knows_when_it_was_granted_first(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) drift.Instant { return drift.Instant{}.Earlier(-d) }
	a := ask{sent: at(10), ballots: make([]quorum.Ballot, 3)}
	for i, step := range []struct{ at, want time.Duration }{{30, 30}, {20, 20}, {25, 20}} {
		a.record(i, quorum.Ballot{Vote: quorum.Granted}, at(step.at))
		if a.first != at(step.want) {
			t.Errorf("after %d grants: first %v, want %v", i+1, a.first, at(step.want))
		}
	}
	if a.record(0, quorum.Ballot{Vote: quorum.Granted}, at(5)); a.first != at(10) {
		t.Errorf("first %v, want the instant of the ask", a.first)
	}
	if a.record(0, quorum.Ballot{Vote: quorum.Refused}, at(40)); a.ballots[0].Vote != quorum.Granted {
		t.Error("an answer from before a grant takes it back")
	}
}

// Whatever comes in whatever order, what is sent stays in order, a lock is won by a
// majority of grants of one ask alone, nothing is kept by a waiter that has ended, and a
// waiter that waits is woken by something.
func TestA_waiter_keeps_its_invariants_in_any_order_of_events(t *testing.T) {
	t.Parallel()
	kinds := []string{"first", "over", "timer", "woke", "undone", "pace", "missed A", "missed B", "notifies A", "notifies B",
		"grants A", "grants B", "grants C", "old grants B", "repeats A-", "repeats A%", "repeats B+", "repeats B%", "old repeats A+", "late C-", "late A~", "late B!", "late C!",
		"decided A- B- C-", "decided A+ B- C-", "decided A+ B+", "decided A- B~ C~", "decided A! B! C+", "decided A! B-", "left", "leased", "close"}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		m, past := newMachine(3), []string{}
		if r.IntN(3) == 0 {
			m.happens("fair")
		}
		for range 60 {
			what := kinds[r.IntN(len(kinds))]
			if !m.may(what) {
				continue
			}
			past = append(past, what)
			m.happens(what)
			if m.broken != "" {
				t.Fatalf("seed %d: %s, after %q", seed, m.broken, past)
			}
		}
	}
}

// plain is a lock without a client, of which a step needs the options alone.
type plain struct {
	Lock
	options Options
}

func (p *plain) Options() Options { return p.options }

// exclusive is a claim that agrees on a ticket. A step sends no command of it.
type exclusive struct {
	Claim
	ticketed
}

var errFinal = errors.New("an error that does not pass")

// machine is a waiter and what a test knows of it.
type machine struct {
	*Waiter
	now     drift.Instant
	values  []string // of its asks
	ids     int
	busy    bool // an ask or repeat is being handed over
	open    bool // the last ask is not decided
	timed   bool // the timer is set
	awake   bool // its caller is woken
	closed  bool
	left    bool
	leased  bool
	granted map[string]quorum.Set // by value
	spent   map[string]bool       // values that came to nothing
	kept    map[string]bool       // values that the masters may store
	broken  string                // an invariant
}

func newMachine(masters int) *machine {
	qs := &Queues{}
	qs.Start(Client{
		Members: quorum.NewMembers(make([]node.Node, masters), quorum.Size(masters), nil, nil, 0), RetryInterval: 100 * time.Millisecond,
		Reason: func(err error) error { return err },
	})
	return &machine{
		Waiter:  &Waiter{lock: &plain{options: Options{TTL: 30 * time.Second}}, claim: &exclusive{}, queue: &queue{all: qs}, came: 1, ticket: 1},
		granted: map[string]quorum.Set{}, spent: map[string]bool{}, kept: map[string]bool{},
	}
}

// happens has something happen, and returns the state and the effects.
func (m *machine) happens(what string) string {
	words := strings.Fields(what)
	if after, ok := strings.CutPrefix(words[0], "+"); ok {
		d, _ := time.ParseDuration(after)
		m.now, words = m.now.Earlier(-d), words[1:]
	}
	e := event{now: m.now, closed: m.closed}
	if len(m.values) > 0 {
		e.value = m.values[len(m.values)-1]
	}
	if words[0] == "old" {
		words = words[1:]
		if e.value = ""; len(m.values) > 1 {
			e.value = m.values[len(m.values)-2]
		}
	}
	if len(words) > 1 {
		e.master = int(words[1][0] - 'A')
	}
	last := words[len(words)-1]
	switch words[0] {
	case "first":
		e.kind = isFirst
	case "over":
		e.kind, m.busy = askHandedOver, false
	case "timer":
		e.kind, m.timed = timerFired, false
	case "pace":
		e.kind = paceAllows
		m.queue.all.pace.open = 0
	case "woke":
		e.kind = callerWoke
	case "grants":
		e.kind, e.ballot = masterGranted, quorum.Ballot{Vote: quorum.Granted, Reply: wire.Reply{Value: "OK"}}
	case "notifies":
		e.kind = masterNotified
	case "missed":
		e.kind = messagesMissed
	case "repeats":
		e.kind, e.ballot = repeatAnswered, ballotOf(last)
	case "late":
		e.kind, e.ballot, e.master = masterAnswered, ballotOf(last), int(last[0]-'A')
		if words[1] == "for" {
			m.claim.(*forGood).known = true
		}
	case "decided":
		e.kind, m.open = roundDecided, m.open && e.value != m.ask.value
		e.votes, e.why = m.votesOf(words[1:])
		tally := quorum.NewTally(m.masters())
		for _, b := range e.votes {
			tally.Count(b.Vote)
		}
		e.waited = e.why != nil && !tally.Conclusive()
	case "undone":
		e.kind, e.why = leaseFailed, ErrExpired
		if last == "good" {
			e.why = errFinal
		}
	case "left", "leased":
		e.kind, m.leased, m.left = callerLeft, words[0] == "leased", true
		e.leased = m.leased
	case "close":
		e.kind, e.closed, m.closed = clientClosed, true, true
	default:
		m.prepare(words)
		return stateNames[m.state] + ":"
	}
	return m.steps(e)
}

// prepare changes what is given to a waiter.
func (m *machine) prepare(words []string) {
	qs := m.queue.all
	switch words[0] {
	case "polling":
		m.polls, m.lock.(*plain).options.Poll = math.MaxInt, &Polling{time.Second, 3 * time.Second}
	case "deaf":
		qs.hearing.members = quorum.NewMembers(make([]node.Node, 3), 4, nil, nil, 0)
	case "hears":
		qs.hearing.members = quorum.NewMembers(make([]node.Node, 3), 2, nil, nil, 0)
	case "mute":
		nodes := make([]node.Node, 3)
		nodes[words[1][0]-'A'] = mute{}
		qs.hearing.members = quorum.NewMembers(nodes, 2, nil, nil, 0)
	case "attempted":
		m.ids = 1
		m.ask = ask{id: "w1", value: "w1:0", ballots: make([]quorum.Ballot, 3)}
	case "crowd":
		qs.pace.open = mostOpen
	case "four":
		*m = *newMachine(4)
		m.prepare(words[1:])
	case "fair":
		m.lock.(*plain).options.Fair, m.ticket = true, 0
	case "permits":
		m.claim = &forGood{}
	case "several":
		m.claim = &hurried{}
	case "soon":
		m.claim.(*hurried).soon = true
	}
}

// mute is a master that cannot notify us.
type mute struct{ node.Node }

func (mute) Subscribed(string) bool { return false }

// forGood is a claim that may know why no other ask will end differently.
type forGood struct {
	exclusive
	known bool
}

func (f *forGood) Why([]quorum.Ballot) error {
	if f.known {
		return errFinal
	}
	return nil
}

// hurried is a claim that may want to ask again soon.
type hurried struct {
	exclusive
	soon bool
}

func (h *hurried) Reconsider([]quorum.Ballot, bool) bool { return h.soon }

// ballotOf reads an answer.
func ballotOf(text string) (b quorum.Ballot) {
	b.Vote = quorum.Refused
	refused := []any{int64(10_000), int64(0)}
	switch text[1] {
	case '+':
		return quorum.Ballot{Vote: quorum.Granted, Reply: wire.Reply{Value: "OK"}}
	case '~':
		return quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: node.ErrTimeout}}}
	case '/':
		return quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: node.ErrDown}}}
	case 'z':
		return quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: node.ErrSilent}}}
	case '^':
		return quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: node.ErrUnknown}}}
	case '?':
		return quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: &wire.ReplyError{}}}}
	case '!':
		return quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: &wire.ServerError{Code: "NOPERM"}}}}
	case '%':
		return quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: guard.Quarantine(time.Second, "new")}}}
	case '=':
		refused[1] = int64(1)
	case '.':
		refused[0] = int64(1000)
	}
	var place int64
	if n, _ := fmt.Sscan(text[2:], &place); n > 0 {
		refused = append(refused, int64(0), place)
	}
	b.Reply.Value = refused
	return b
}

// votesOf reads the answers that decided a round, and why it was lost.
func (m *machine) votesOf(words []string) (votes []quorum.Ballot, why error) {
	votes = make([]quorum.Ballot, m.masters())
	granted, failed := 0, 0
	for _, text := range words {
		if text == "for" || text == "good" {
			why = errFinal
			continue
		}
		b := ballotOf(text)
		votes[text[0]-'A'] = b
		switch b.Vote {
		case quorum.Granted:
			granted++
		case quorum.Failed:
			failed++
		}
	}
	need := m.queue.all.Members.Need()
	switch {
	case why != nil:
	case granted >= need:
	case m.masters()-failed < need:
		why = ErrNoQuorum
	default:
		why = ErrTaken
	}
	return votes, why
}

func signs(votes []quorum.Ballot) string {
	text := ""
	for _, b := range votes {
		text += map[quorum.Vote]string{quorum.Granted: "+", quorum.Refused: "-", quorum.Failed: "~", quorum.Pending: "."}[b.Vote]
	}
	return text
}

// steps takes a step as advance does, without a client, and names what follows.
func (m *machine) steps(e event) string {
	last, before := m.ask, m.state
	if e.kind == callerWoke {
		m.awake = false
	}
	fx := m.step(e)
	m.awake = m.awake || fx.wake
	m.timed = m.timed && fx.timer != never || fx.timer.around > 0
	m.watches(e, fx, before, last)
	does := []string{}
	add := func(is bool, text string) {
		if is {
			does = append(does, text)
		}
	}
	add(fx.waits, "waits")
	add(fx.polls&deaf != 0, "deaf")
	add(fx.polls&barred != 0, "barred")
	add(fx.forget != "", "forget "+fx.forget)
	add(fx.wake, "wake")
	add(fx.timer == never, "stop")
	if fx.ask {
		text := "ask " + m.ask.value
		if m.ask.polls {
			text += " polls"
		}
		if m.ticket > 1 {
			text += fmt.Sprintf(" at %d", m.ticket)
		}
		add(true, text)
	}
	if fx.repeat != 0 {
		text := "repeat "
		for i := range m.masters() {
			if fx.repeat.Has(i) {
				text += string(rune('A' + i))
			}
		}
		add(true, text)
	}
	if p := fx.timer; p.around > 0 {
		text := "timer " + p.around.String()
		if p.atMost < forever {
			text += "<=" + p.atMost.String()
		}
		add(true, text)
	}
	return strings.TrimSpace(stateNames[m.state] + ": " + strings.Join(does, ", "))
}

var stateNames = map[state]string{
	parked: "parked", resting: "resting", paced: "paced", asking: "asking", won: "won", taking: "taking", finished: "finished",
}

// watches counts grants, and notes what breaks an invariant.
func (m *machine) watches(e event, fx effects, before state, last ask) {
	breaks := func(is bool, what string) {
		if is && m.broken == "" {
			m.broken = what
		}
	}
	switch e.kind {
	case masterGranted:
		m.granted[e.value] |= quorum.Only(e.master)
	case repeatAnswered:
		if e.ballot.Vote == quorum.Granted {
			m.granted[e.value] |= quorum.Only(e.master)
		}
	case roundDecided:
		for i, b := range e.votes {
			if b.Vote == quorum.Granted {
				m.granted[e.value] |= quorum.Only(i)
			}
		}
	case leaseFailed:
		m.spent[e.value] = true
	}
	breaks(fx.forget != "" && m.busy, "a release overtakes an ask")
	if fx.forget != "" {
		delete(m.kept, fx.forget)
	}
	if fx.repeat != 0 {
		breaks(m.busy, "a repeat overtakes an ask")
		m.busy = true
	}
	if fx.ask {
		breaks(m.busy, "an ask overtakes another one")
		breaks(m.open, "an ask is sent before the one before is decided")
		breaks(e.closed, "an ask after Close")
		if m.ask.id == "" {
			m.ids++
			m.ask.id = fmt.Sprintf("w%d", m.ids)
		} else {
			delete(m.kept, last.value) // every ask takes back what the one before was granted
		}
		m.ask.value = fmt.Sprintf("%s:%d", m.ask.id, m.ask.n)
		breaks(slices.Contains(m.values, m.ask.value), "two asks have one value")
		m.values = append(m.values, m.ask.value)
		m.kept[m.ask.value], m.busy, m.open = true, true, true
		breaks(len(m.kept) > 1, "an ask that was given up is not forgotten")
	}
	breaks((m.state == won || m.state == taking) && (m.granted[m.ask.value].Len() < 2 || m.spent[m.ask.value]), "won without a majority of grants")
	breaks(m.state == won && !m.busy && !m.awake && !m.left, "nobody wakes the caller")
	breaks(m.state == finished && before != finished && !m.awake && !m.left, "nobody wakes the caller of a wait that has ended")
	breaks(m.state == finished && !m.busy && len(m.kept) > 0 && !m.leased, "what was asked for is not forgotten")
	breaks(m.state == asking && !m.open, "nothing decides the ask")
	breaks(m.state == resting && !m.timed && !m.closed && !(m.busy && m.out.due), "nothing has it ask again")
	breaks(m.state == paced && !slices.Contains(m.queue.all.pace.line.waiters, m.Waiter), "it is in no line")
	breaks(before == finished && (fx.ask || fx.repeat != 0), "a waiter that has ended asks")
}

// may reports whether something can happen now.
func (m *machine) may(what string) bool {
	words := strings.Fields(what)
	switch words[0] {
	case "first":
		return m.state == parked
	case "fair":
		return len(m.values) == 0
	case "over":
		return m.busy
	case "timer":
		return m.timed
	case "woke":
		return m.awake && !m.left
	case "undone", "leased":
		return m.state == taking && !m.left
	case "left":
		return m.state != taking && !m.left
	case "decided":
		return m.open
	case "old":
		return len(m.values) > 1
	case "late":
		return len(m.values) > 0 && !m.open
	}
	return len(m.values) > 0
}
