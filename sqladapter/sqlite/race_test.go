//go:build race

package sqlite_test

// There is less of everything under the race detector, with which SQLite takes fifty
// times as long. What is left is more than TestManyMessages allows of parameters, than
// one statement walks of a chain, and than fits in a transaction of a projection.
const (
	manyMessages  = 5_000
	longChain     = 10_500
	rapidChecks   = "15"
	projectChecks = 8
	projectLarge  = 600
)
