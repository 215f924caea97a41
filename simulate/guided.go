package simulate

// A guided run keeps the schedules that reached a state which none before had, and runs
// mutants of them beside fresh seeds. What is kept is known when a generation of
// schedules is done, in the order of their numbers, so that a seed always gives the
// same run, however many workers there are.

// generation is how many schedules are drawn from what was kept before them.
const generation = 128

// Coverage is what a guided run has reached.
type Coverage struct {
	States   int `json:"states"`   // that were reached
	Kept     int `json:"kept"`     // schedules that reached one first
	Mutants  int `json:"mutants"`  // schedules that were mutants of those
	Fruitful int `json:"fruitful"` // mutants that were kept
}

// guide is what a run has kept until now.
type guide struct {
	config *Config
	counts map[state]int // in how many schedules each state was reached
	kept   []keeper
	// parents are those kept in the generations before, and rarity is in how many schedules
	// the rarest state was reached that each of them reached first.
	parents []keeper
	rarity  []int
	Coverage
}

// keeper is a schedule that was kept, and the states that it reached first.
type keeper struct {
	schedule *Schedule
	reached  []state
	first    []state // of those that it reached
	isOld    bool    // it was kept by an earlier run
}

// visit is what one schedule has reached.
type visit struct {
	schedule *Schedule
	isMutant bool
	isOld    bool
	reached  map[state]struct{}
}

func newGuide(cfg *Config) *guide { return &guide{config: cfg, counts: map[state]int{}} }

// schedule returns the schedule of a number: one that was kept by an earlier run, a
// mutant, or that of a fresh seed.
func (g *guide) schedule(number int) (s *Schedule, isMutant bool) {
	if number < len(g.config.Corpus) {
		return g.config.Corpus[number].under(g.config), false
	}
	dice := newStream(g.config.Seed, "guide", number)
	isFresh := len(g.parents) == 0 || dice.below(100) >= g.config.Mutate
	if !isFresh && dice.chance(400) {
		return g.parent(dice).mutant(dice, g.parent(dice)), true
	}
	s = draw(g.config, g.config.Seed+uint64(number))
	if isFresh {
		return s, false
	}
	m := &mutation{s, g.parent(dice), dice} // what went wrong there, too, in a world of its own
	m.addTheirs(0)
	return m.done(), true
}

// parent draws one of those kept, rather one that reached what few others did.
func (g *guide) parent(dice *stream) *Schedule {
	best := dice.below(len(g.parents))
	for range 3 {
		if i := dice.below(len(g.parents)); g.rarity[i] < g.rarity[best] {
			best = i
		}
	}
	return g.parents[best].schedule
}

// begin begins a generation. Until it ends, workers read what it sets.
func (g *guide) begin() {
	g.parents, g.rarity = g.kept, g.rarity[:0]
	for _, k := range g.parents {
		least := g.counts[k.first[0]]
		for _, s := range k.first {
			least = min(least, g.counts[s])
		}
		g.rarity = append(g.rarity, least)
	}
}

// under returns the schedule as one of a run: with its transport and options.
func (s *Schedule) under(cfg *Config) *Schedule {
	own := *s.config
	own.Options = cfg.Options
	if cfg.Transport != Mixed {
		own.Transport = cfg.Transport
	}
	c := s.clone()
	c.config = &own
	return c
}

// take notes what a schedule has reached.
func (g *guide) take(v visit) {
	var all, first []state
	for s := range v.reached {
		all = append(all, s)
		if g.counts[s] == 0 {
			first = append(first, s)
		}
		g.counts[s]++
	}
	g.Mutants += toInt(v.isMutant)
	if len(first) > 0 {
		g.kept = append(g.kept, keeper{v.schedule, all, first, v.isOld})
		g.Fruitful += toInt(v.isMutant)
	}
	g.States, g.Kept = len(g.counts), len(g.kept)
}
