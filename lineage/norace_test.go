//go:build !race

package lineage_test

const underRace = false
