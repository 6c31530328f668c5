//go:build !race

package pack

const checks = "100"
