//go:build race

package lineage_test

// underRace is set where the race detector runs, under which a sync.Pool loses some
// of what it is given.
const underRace = true
