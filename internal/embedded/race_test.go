//go:build race

package embedded

// checks is how often properties are tried under the race detector, which takes ten
// times as long.
const checks = "30"
