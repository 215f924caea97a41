package plan

import (
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// This file has the sequences of faults and actions in which a caller waits for longer than a
// promise allows. There are three masters, and a registration lasts for ten seconds.

// Waits makes the configuration of a script in which clients wait.
func Waits(script func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action)) func() Config {
	return func() Config {
		cfg := Acted(script)()
		cfg.Nodes, cfg.Clients = 3, 3
		return cfg
	}
}

// reservedForTheDead: client 1 reads, client 2 waits to write and dies, client 3 wants to
// read. Or client 1 has two permits of four, client 2 waits for three, and client 3 wants one.
func ReservedForTheDead(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	died := time.Second + dice.Between(0, 500*time.Millisecond)
	holds := Action{Think: dice.Between(0, 200*time.Millisecond), Patience: time.Second, Hold: cfg.Duration, Renew: true}
	dies := Action{Think: 500 * time.Millisecond, Patience: cfg.Duration}
	wants := Action{Think: died + dice.Between(10*time.Millisecond, time.Second), Patience: cfg.Duration}
	if cfg.Lock = ReadWriteLock; dice.Chance(500) {
		cfg.Lock, cfg.Permits = SemaphoreLock, 4
		holds.Permits, dies.Permits, wants.Permits = 2, 3, 1
	} else {
		holds.Read, wants.Read = true, true
	}
	return []Fault{{Kind: ClientCrash, Client: 1, At: died, For: cfg.Duration}}, [][]Action{{holds}, {dies}, {wants}}
}

// behindInTurns: the clocks of clients 2 and 3 are behind, and they take the lock again and
// again. Client 1 wants it once.
func BehindInTurns(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	cfg.TTL = time.Second
	var again []Action
	for range 100 {
		again = append(again, Action{Think: dice.Between(0, 5*time.Millisecond), Patience: cfg.Duration, Hold: dice.Between(100*time.Millisecond, 200*time.Millisecond)})
	}
	return []Fault{
			{Kind: ClientStep, Client: 1, At: time.Millisecond, Size: -dice.Spread(time.Second, time.Hour)},
			{Kind: ClientStep, Client: 2, At: time.Millisecond, Size: -dice.Spread(time.Second, time.Hour)},
		}, [][]Action{
			{{Think: 6*time.Second + dice.Between(0, time.Second), Patience: cfg.Duration}}, again, again,
		}
}

// intentOfAReader: client 1 writes, and client 2 waits to write. Of the three masters C does
// not hear of it when client 1 unlocks, so client 2 gets A and B, and stays queued at C. It
// goes on as a reader, and another caller of it waits for another lock, so that it listens.
// Client 3 reaches B and C, and wants to read.
func IntentOfAReader(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	cfg.Lock = ReadWriteLock
	unlocked, writes := time.Second+dice.Between(0, 300*time.Millisecond), cfg.TTL*45/100
	return []Fault{
			{Kind: Partition, At: unlocked - 50*time.Millisecond, For: dice.Between(100*time.Millisecond, 700*time.Millisecond), Client: 0, Node: 2},
			{Kind: Partition, For: cfg.Duration, Client: 2, Node: 0},
		}, [][]Action{
			{{Think: 100 * time.Millisecond, Patience: time.Second, Hold: unlocked - 100*time.Millisecond - Connecting}},
			{{Think: 500 * time.Millisecond, Patience: cfg.Duration, Hold: writes, Downgrade: true}},
			{{Think: unlocked + writes + dice.Between(0, 100*time.Millisecond), Patience: cfg.Duration, Read: true}},
			{{Think: 50 * time.Millisecond, Lock: LockName + "1", Patience: time.Second, Hold: cfg.Duration, Renew: true}},
			{{Think: 300 * time.Millisecond, Lock: LockName + "1", Patience: cfg.Duration}},
		}
}

// takenByTheDead: client 1 holds a fair lock, client 2 waits for it, and both die. Client 3
// tries until after the lock has expired.
func TakenByTheDead(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	cfg.Lock = FairLock
	died := cfg.TTL/3 + dice.Between(500*time.Millisecond, time.Second)
	var tries []Action
	for range 50 {
		tries = append(tries, Action{Think: dice.Between(50*time.Millisecond, 150*time.Millisecond), Patience: time.Second, How: ByTryLock})
	}
	tries[0].Think += cfg.TTL * 9 / 10
	return []Fault{
			{Kind: ClientCrash, Client: 0, At: died, For: 2 * cfg.Duration},
			{Kind: ClientCrash, Client: 1, At: died, For: 2 * cfg.Duration},
		}, [][]Action{
			{{Think: 100 * time.Millisecond, Patience: time.Second, Hold: cfg.Duration}},
			{{Think: 300 * time.Millisecond, Patience: cfg.Duration}},
			tries,
		}
}

// toldAndGone: client 1 unlocks a lock that is kept, and clients 2 and 3 wait for it. Client 2
// gives up before the lock ends, and client 3 would look for it by itself only later. No fault has
// consequences by then.
func ToldAndGone(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	cfg.Duration = 30 * time.Second
	at := 22*time.Second + dice.Between(0, time.Second)
	return nil, [][]Action{
		{{Think: at, Patience: time.Second, Hold: 400 * time.Millisecond, AtLeast: 1600 * time.Millisecond}},
		{{Think: at + 100*time.Millisecond, Patience: dice.Between(500*time.Millisecond, 1300*time.Millisecond)}},
		{{Think: at + 200*time.Millisecond, Patience: cfg.Duration}},
	}
}
