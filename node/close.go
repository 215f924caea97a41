package node

import "errors"

// CloseAll closes nodes side by side: together they take as long as the slowest
// of them, and not the sum. It must not be called from a callback.
func CloseAll[N Node](nodes []N) error {
	for _, n := range nodes {
		if m, ok := any(n).(interface{ beginClose() }); ok { // a Master, or what embeds one
			m.beginClose()
		}
	}
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}
