// Package backendtest is the conformance suite for storage engines: it tests
// what the doc comments of package backend promise. The test of an engine calls
// [Run].
package backendtest

import (
	"context"
	"testing"

	"github.com/lineage-store/lineage/lineage/backend"
)

// OpenFunc opens a store. Every call opens the same store; it is called only
// while the store is closed.
type OpenFunc func(ctx context.Context) (backend.Engine, error)

// Config describes the engine to test.
type Config struct {
	// New prepares a new, empty store and returns the function that opens it. It
	// is called many times in one test.
	New func(t testing.TB) OpenFunc
	// Reopen closes and reopens the store after every commit, unless a test is
	// still reading.
	Reopen bool
	// RoundTrips says that each read of the engine is a round trip, unless it is one of a snapshot. The
	// state is then compared through a snapshot, except for the first time after the store was opened.
	RoundTrips bool
}
