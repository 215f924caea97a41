package node

import "testing"

// What another master raises while the guard is asked is not resolved by its
// answer, which may be that of before.
func TestDoubt_raised_while_it_is_looked_into(t *testing.T) {
	var d doubt
	d.raise()
	seen := d.seen()
	d.raise()
	d.resolve(seen)
	if !d.any() {
		t.Error("a doubt that nobody has looked into is resolved")
	}
	d.resolve(d.seen())
	if d.any() {
		t.Error("a doubt that was looked into is not resolved")
	}
}
