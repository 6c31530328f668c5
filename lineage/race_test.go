//go:build race

package lineage_test

// underRace is set with the race detector, which makes sync.Pool drop some of its values.
const underRace = true
