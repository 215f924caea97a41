//go:build !race

package simulate

const share = 1
