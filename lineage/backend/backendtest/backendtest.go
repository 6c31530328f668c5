// Package backendtest is the conformance suite for storage engines: what the
// doc comments of package backend promise, as tests. An engine's own test is a
// call of [Run].
package backendtest

import (
	"context"
	"testing"

	"github.com/lineage-store/lineage/lineage/backend"
)

// OpenFunc opens one and the same store, again and again. It is called only
// while the store is not open.
type OpenFunc func(ctx context.Context) (backend.Engine, error)

// Config says what to test.
type Config struct {
	// New makes room for a new and empty store and returns how to open it. It is
	// called many times in one test.
	New func(t testing.TB) OpenFunc
	// Reopen closes and opens a store after every commit that a test applies to
	// it, unless something is still being read.
	Reopen bool
}

// Run tests an engine.
func Run(t *testing.T, c Config) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Config)
	}{
		{"Empty", testEmpty},
		{"Refused", testRefused},
		{"RefusedTips", testRefusedTips},
		{"Numbers", testNumbers},
		{"Memory", testMemory},
		{"Known", testKnown},
		{"KnownByAnother", testKnownByAnother},
		{"Chunks", testChunks},
		{"Uploads", testUploads},
		{"Once", testOnce},
		{"OnceTogether", testOnceTogether},
		{"Tips", testTips},
		{"Threads", testThreads},
		{"ThreadsEnding", testThreadsEnding},
		{"Listings", testListings},
		{"ExpectedContexts", testExpectedContexts},
		{"ExpectedNames", testExpectedNames},
		{"SourceIDs", testSourceIDs},
		{"Find", testFind},
		{"ExpectedSources", testExpectedSources},
		{"Values", testValues},
		{"RefusedValues", testRefusedValues},
		{"ExpectedValues", testExpectedValues},
		{"ValuesOfForks", testValuesOfForks},
		{"ValuesGoWithOwners", testValuesGoWithOwners},
		{"Moved", testMoved},
		{"Names", testNames},
		{"Order", testOrder},
		{"Windows", testWindows},
		{"LongRun", testLongRun},
		{"Alternatives", testAlternatives},
		{"Where", testWhere},
		{"Deletion", testDeletion},
		{"ThreadDeletion", testThreadDeletion},
		{"Recreation", testRecreation},
		{"Erase", testErase},
		{"EraseWithin", testEraseWithin},
		{"ErasedElsewhere", testErasedElsewhere},
		{"Feed", testFeed},
		{"Wait", testWait},
		{"Cursors", testCursors},
		{"Receive", testReceive},
		{"Recent", testRecent},
		{"Snapshot", testSnapshot},
		{"SnapshotsMeanwhile", testSnapshotsMeanwhile},
		{"Close", testClose},
		{"CloseExpires", testCloseExpires},
		{"CloseUnderReaders", testCloseUnderReaders},
		{"CloseMeanwhile", testCloseMeanwhile},
		{"Cancel", testCancel},
		{"Breaks", testBreaks},
		{"Verify", testVerify},
		{"Random", testRandom},
		{"Concurrent", testConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}
