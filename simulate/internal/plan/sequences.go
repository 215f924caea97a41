package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// This file has the sequences of faults and actions that scenarios of the catalogue
// play. Masters are called A to E, clients 1 to 3, as in the timeline. Those of
// clients that know too little of a master's past are in newcomers.go.

// erosion: client 1 holds A, B and C, because D and E are cut off from it. C
// forgets. Client 2 then asks all.
func Erosion(forgets ...Fault) func(*world.Dice, *Config) ([]Fault, [][]Action) {
	return func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
		faults := []Fault{
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 3},
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 4},
		}
		at := dice.Between(500*time.Millisecond, time.Second)
		for i, f := range forgets {
			f.Node, f.Client = 2, 0
			f.At = at + time.Duration(i)*time.Millisecond
			switch f.Kind {
			case Step:
				f.Size = dice.Between(cfg.TTL, 3*cfg.TTL)
			case RestartSnapshot, Failover, Follow:
				f.Size = f.At
				fallthrough
			case RestartEmpty:
				f.For = dice.Between(time.Millisecond, 300*time.Millisecond)
			}
			faults = append(faults, f)
		}
		// Client 2 starts more than a heartbeat after the fault. No guard knows of
		// the fault before that.
		return faults, [][]Action{
			{{Think: dice.Between(100*time.Millisecond, 300*time.Millisecond), Patience: time.Second, Hold: cfg.TTL * 9 / 10, Renew: dice.Chance(500)}},
			{{Think: dice.Between(2500*time.Millisecond, 5*time.Second), Patience: 3 * time.Second, Hold: time.Second}},
		}
	}
}

// commonStep: client 1 holds all masters; all their clocks jump; client 2 asks.
func CommonStep(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	_, actions := Erosion()(dice, cfg)
	actions[0][0].Renew = false // a renewal would put the keys back in time
	return []Fault{{
		Kind: Step, Node: -1, At: dice.Between(500*time.Millisecond, time.Second), Size: dice.Between(cfg.TTL, 3*cfg.TTL),
	}}, actions
}

// CommonStepBack: the clocks of all masters are set back together, and clients lock and unlock
// all the time.
func CommonStepBack(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	all := make([][]Action, cfg.Clients)
	for i := range all {
		for range 12 {
			all[i] = append(all[i], Action{Think: dice.Between(0, 2*time.Second), Patience: time.Second, Hold: dice.Between(0, time.Second)})
		}
	}
	return []Fault{{
		Kind: Step, Node: -1, At: dice.Between(500*time.Millisecond, time.Second), Size: -dice.Spread(100*time.Millisecond, 3*cfg.TTL),
	}}, all
}

// lateErosion: as erosion, but D and E come back, and renewals repair them,
// before C forgets.
func LateErosion(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	back := dice.Between(500*time.Millisecond, time.Second)
	faults := []Fault{
		{Kind: Partition, At: 0, For: back, Client: 0, Node: 3},
		{Kind: Partition, At: 0, For: back, Client: 0, Node: 4},
		{Kind: Delete, At: dice.Between(6*time.Second, 9*time.Second), Node: 2},
	}
	return faults, [][]Action{
		{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: cfg.TTL * 14 / 10, Renew: true}},
		{{Think: dice.Between(5*time.Second, 9*time.Second), Patience: 6 * time.Second, Hold: time.Second}},
	}
}

// rollingRestarts: three masters restart empty, with time for a renewal in
// between. Client 1 holds the lock throughout. The time between two restarts is
// longer than client 2's guard, so that the masters that are back may grant.
func RollingRestarts(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	var faults []Fault
	at := dice.Between(time.Second, 2*time.Second)
	first := dice.Below(cfg.Nodes)
	for i := range 3 {
		faults = append(faults, Fault{Kind: RestartEmpty, At: at, For: 100 * time.Millisecond, Node: (first + i) % cfg.Nodes})
		at += cfg.TTL * 12 / 10
	}
	// At the last one the key is deleted by hand instead, which no guard sees.
	faults[2] = Fault{Kind: Delete, At: faults[2].At, Node: faults[2].Node}
	cfg.Duration = at + 6*time.Second
	return faults, [][]Action{
		{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: cfg.Duration, Renew: true}},
		{{Think: faults[2].At - time.Second, Patience: 4 * time.Second, Hold: time.Second}},
	}
}

// Pairs: client 1 holds the lock, and again and again two masters restart empty in the same
// instant.
func Pairs(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	var faults []Fault
	for at := 2 * time.Second; at < cfg.Duration; at += dice.Between(10*time.Second, 15*time.Second) {
		first, down := dice.Below(cfg.Nodes), dice.Between(time.Millisecond, 20*time.Millisecond)
		for i := range 2 {
			faults = append(faults, Fault{Kind: RestartEmpty, At: at, For: down, Node: (first + i) % cfg.Nodes})
		}
	}
	return faults, [][]Action{
		{{Think: time.Second, Patience: time.Second, Hold: cfg.Duration, Renew: true}},
		{{Think: 3 * time.Second, How: ByTryLock, Hold: time.Second}},
	}
}

// resurrection: client 1 holds A, B and C; A loses the key again and again.
// Client 2 cannot reach D before client 1's first validity is over.
func Resurrection(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	faults, actions := Erosion()(dice, cfg)
	over := cfg.TTL + time.Second
	faults = append(faults, Fault{Kind: Partition, At: 0, For: over, Client: 1, Node: 3})
	for at := 2 * time.Second; at < cfg.Duration; at += dice.Between(5*time.Millisecond, 50*time.Millisecond) {
		faults = append(faults, Fault{Kind: Delete, At: at, Node: 0})
	}
	actions[0][0].Hold, actions[0][0].Renew = cfg.Duration, true
	actions[1][0].Patience = cfg.Duration
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
	return faults, actions
}

// staleRelease: client 1 never reaches D and E, and at first not C either. Its
// attempts fail, and its releases to C are held up. Once it reaches C again, it
// gets the lock over a new connection, and then the old releases arrive.
func StaleRelease(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	back := dice.Between(1500*time.Millisecond, 4*time.Second)
	faults, _ := Erosion(Fault{Kind: CutOut})(dice, cfg)
	faults[2].At, faults[2].For = 120*time.Millisecond, back-120*time.Millisecond
	return faults, [][]Action{
		{{Think: 200 * time.Millisecond, Patience: back + 4*time.Second, Hold: cfg.TTL * 9 / 10}},
		{{Think: back + dice.Between(time.Second, 2*time.Second), Patience: 5 * time.Second, Hold: time.Second}},
	}
}

// impatience: every client gives up after about as long as an attempt takes, again
// and again until the schedule ends.
func Impatience(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	all := make([][]Action, cfg.Clients)
	for c := range all {
		for at := time.Duration(0); at < cfg.Duration; {
			a := Action{
				Think:    dice.Between(0, 100*time.Millisecond),
				Patience: dice.Spread(500*time.Microsecond, 20*time.Millisecond),
				Hold:     dice.Between(0, 50*time.Millisecond),
			}
			all[c] = append(all[c], a)
			at += a.Think + a.Hold
		}
	}
	return nil, all
}

// pauseBeforeReply: client 1 stops in the middle of asking, for longer than the
// TTL; client 2 takes the lock meanwhile and still holds it when client 1 goes
// on.
func PauseBeforeReply(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	start := 100 * time.Millisecond
	stop := start + Connecting + dice.Between(0, 8*time.Millisecond)
	return []Fault{{Kind: ClientPause, At: stop, For: cfg.TTL + dice.Between(500*time.Millisecond, 2*time.Second), Client: 0}},
		[][]Action{
			{{Think: start, Patience: 2 * cfg.TTL, Hold: time.Second}},
			{{Think: time.Second, Patience: 2 * cfg.TTL, Hold: 4 * time.Second}},
		}
}

func ResizedToFewer() Config {
	cfg := WithLock(SemaphoreLock, Acted(resizeToFewer))()
	cfg.Nodes, cfg.Clients = 3, 5
	return cfg
}

// resizeToFewer: three clients hold a permit each, and each is cut off from one
// master. A Resize then leaves three permits of five, and another client wants one.
func resizeToFewer(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	cfg.Permits, cfg.Resizes = 5, true
	var faults []Fault
	var actions [][]Action
	for i := range 3 {
		faults = append(faults, Fault{Kind: Partition, At: 0, For: cfg.Duration, Client: i, Node: i})
		actions = append(actions, []Action{{Think: dice.Between(100*time.Millisecond, 500*time.Millisecond), Patience: time.Second, Hold: cfg.TTL * 9 / 10}})
	}
	return faults, append(actions,
		[]Action{{Think: dice.Between(time.Second, 2*time.Second), Patience: time.Second, Resize: 3}},
		[]Action{
			{Think: 3 * time.Second, Patience: time.Second, How: ByTryLock}, // it learns of the Resize
			{Think: dice.Between(0, time.Second), Patience: 3 * time.Second, Hold: time.Second},
		})
}

// hollowRaise: client 3, whose clock is ahead, has raised A's counter. Client 1 then takes the
// lock at A and B, and B forgets the lock before it learns the token.
func HollowRaise(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	begin := 2 * time.Second
	return []Fault{
			{Kind: ClientStep, At: 0, Client: 2, Size: time.Hour},
			{Kind: Partition, At: begin / 10, For: begin, Client: 2, Node: 1},
			{Kind: Partition, At: begin / 10, For: begin, Client: 2, Node: 2},
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2},
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 1, Node: 0},
			{Kind: Delete, At: begin + Connecting + dice.Between(0, 8*time.Millisecond), Node: 1},
		}, [][]Action{
			{{Think: begin, Patience: 100 * time.Millisecond, Hold: 100 * time.Millisecond}},
			{{Think: begin + dice.Between(500*time.Millisecond, time.Second), Patience: 4 * time.Second, Hold: time.Second}},
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: time.Second}},
		}
}

// rateDrift: clocks run apart by less than the drift factor; client 1 uses its
// lease to the end while client 2 waits.
func RateDrift(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	apart := 3000 + dice.Below(1500)
	return []Fault{
			{Kind: Rate, Node: -1, At: 0, For: cfg.Duration, Rate: apart},
			{Kind: ClientRate, Client: 0, At: 0, For: cfg.Duration, Rate: -apart},
		}, [][]Action{
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: 2 * cfg.TTL}},
			{{Think: time.Second, Patience: 2 * cfg.TTL, Hold: time.Second}},
		}
}

// Connecting is how long a client takes before it begins to work.
const Connecting = 50 * time.Millisecond

// Acted plays one sequence of faults and actions. Every seed draws its times anew.
func Acted(script func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action)) func() Config {
	return func() Config {
		return Config{TTL: 10 * time.Second, Duration: 16 * time.Second, Clients: 2, Script: script, Faults: Calm}
	}
}

// WithLock runs config with another kind of lock.
func WithLock(kind LockKind, config func() Config) func() Config {
	return func() Config {
		cfg := config()
		cfg.Lock = kind
		return cfg
	}
}
