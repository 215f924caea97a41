//go:build !race

package simulate

const slower = 1
