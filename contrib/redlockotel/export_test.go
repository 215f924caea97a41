package redlockotel

// Held returns of how many values something is known.
func (t *Telemetry) Held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.leases)
}
