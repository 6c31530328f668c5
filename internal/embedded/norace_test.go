//go:build !race

package embedded

const checks = "100"
