//go:build race

package sqlite_test

// manyMessages are fewer under the race detector, which takes ten times as long.
const manyMessages = 35_000
