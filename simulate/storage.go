package simulate

// Storage is the resource that the lock protects: a number that is read,
// changed and written back, and that reports every write whose reader did not
// know the latest state.
type Storage struct {
	trial   *trial
	version int
	token   uint64
}

// Read returns the version to be given to Write.
func (s *Storage) Read() int { return s.version }

// fence has writes refused that come with a token lower than this one: of whoever
// held the lock before.
func (s *Storage) fence(token uint64) { s.token = max(s.token, token) }

// Write stores what was made of the given version, and reports whether it was
// accepted. A write with a fencing token lower than one that it has seen is
// refused; a token of zero is none. A write that is accepted although the
// version is not the latest has undone somebody's update.
func (s *Storage) Write(version int, token uint64) bool {
	if token != 0 && token < s.token {
		return false
	}
	s.token = max(s.token, token)
	if version != s.version {
		s.trial.check.report(Violation{Kind: LostUpdate, What: "a write undid an update that its writer had not seen"})
	}
	s.version++
	return true
}
