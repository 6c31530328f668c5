//go:build race

package pack

// checks is how often properties are tried under the race detector, which takes ten
// times as long and has little to find here: a pack is written by one goroutine.
const checks = "12"
