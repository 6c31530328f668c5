package backendtest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run tests an engine.
func Run(t *testing.T, c Config) { tests.Run(t, c) }

// RunConcurrent runs the tests that the race detector is useful for: those that use an engine from several
// goroutines, and random commits, which reach every part of an engine that has goroutines of its own.
func RunConcurrent(t *testing.T, c Config) { tests.RunConcurrent(t, c) }

// RunSequential runs the other tests, and with -short all.
func RunSequential(t *testing.T, c Config) { tests.RunSequential(t, c) }

var tests = campaign.Suite[Config, Config]{
	New: func(_ *testing.T, c Config) Config { return c },
	Sequential: campaign.Tests[Config]{
		{"Empty", testEmpty},
		{"Refused", testRefused},
		{"RefusedTips", testRefusedTips},
		{"Numbers", testNumbers},
		{"Memory", testMemory},
		{"Known", testKnown},
		{"Chunks", testChunks},
		{"Uploads", testUploads},
		{"Once", testOnce},
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
		{"Remnants", testRemnants},
		{"Recreation", testRecreation},
		{"Erase", testErase},
		{"EraseWithin", testEraseWithin},
		{"ErasedElsewhere", testErasedElsewhere},
		{"Cursors", testCursors},
		{"Receive", testReceive},
		{"Recent", testRecent},
		{"Close", testClose},
		{"CloseExpires", testCloseExpires},
		{"Cancel", testCancel},
		{"Breaks", testBreaks},
		{"Verify", testVerify},
		{"Collect", testCollect},
	},
	Concurrent: campaign.Tests[Config]{
		{"KnownByAnother", testKnownByAnother},
		{"OnceTogether", testOnceTogether},
		{"Feed", testFeed},
		{"Wait", testWait},
		{"Snapshot", testSnapshot},
		{"SnapshotsMeanwhile", testSnapshotsMeanwhile},
		{"CloseUnderReaders", testCloseUnderReaders},
		{"CloseMeanwhile", testCloseMeanwhile},
		{"Concurrent", testConcurrent},
		{"Random", testRandom},
	},
}
