package projecttest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run runs all tests.
func Run(t *testing.T, c Config) { tests.Run(t, c) }

// RunConcurrent runs the tests that the race detector is useful for: those with several projectors at once, a chat
// whose messages are indexed by several goroutines, and random histories.
func RunConcurrent(t *testing.T, c Config) { tests.RunConcurrent(t, c) }

// RunSequential runs the other tests, and with -short all.
func RunSequential(t *testing.T, c Config) { tests.RunSequential(t, c) }

var tests = campaign.Suite[Config, *suite]{
	New: func(_ *testing.T, c Config) *suite { return &suite{c} },
	Sequential: campaign.Tests[*suite]{
		{"Rows", testRows},
		{"Follows", testFollows},
		{"RandomChatsOnly", testRandomChatsOnly},
		{"RandomSharedIDs", testRandomSharedIDs},
		{"Interrupted", testInterrupted},
		{"InterruptedAgain", testInterruptedAgain},
		{"RewoundAfterInterruption", testRewoundAfterInterruption},
		{"ErasedBefore", testErasedBefore},
		{"Derived", testDerived},
		{"DerivedChatsOnly", testDerivedChatsOnly},
		{"OlderSnapshot", testOlderSnapshot},
		{"Refuses", testRefuses},
		{"Shrinks", testShrinks},
		{"StoredAgain", testStoredAgain},
		{"Checkpoints", testCheckpoints},
		{"Users", testUsers},
		{"Owners", testOwners},
		{"Texts", testTexts},
		{"NUL", testNUL},
		{"LeftOut", testLeftOut},
		{"LeftOutRefused", testLeftOutRefused},
		{"LeftOutTaken", testLeftOutTaken},
		{"LeftOutTakenMessage", testLeftOutTakenMessage},
		{"LeftOutRandom", testLeftOutRandom},
		{"Queries", testQueries},
		{"Compare", testCompare},
		{"CompareEmpty", testCompareEmpty},
		{"Import", testImport},
		{"ImportContexts", testImportContexts},
		{"Remnants", testRemnants},
		{"RemnantsAgain", testRemnantsAgain},
		{"RemnantsRandom", testRemnantsRandom},
		{"Values", testValues},
		{"Summaries", testSummaries},
		{"SummariesOfBranches", testSummariesOfBranches},
		{"ImportUsers", testImportUsers},
		{"ImportProblems", testImportProblems},
		{"ImportRandom", testImportRandom},
		{"Lossless", testLossless},
		{"ErasedPieces", testErasedPieces},
		{"ImportDamaged", testImportDamaged},
		{"Diverged", testDiverged},
		{"ImportLarge", testImportLarge},
		{"ImportChanged", testImportChanged},
		{"ImportChangedRandom", testImportChangedRandom},
		{"BehindEarlier", testBehindEarlier},
		{"ImportReserved", testImportReserved},
	},
	Concurrent: campaign.Tests[*suite]{
		{"Random", testRandom},
		{"Concurrent", testConcurrent},
		{"LeftOutTogether", testLeftOutTogether},
		{"Together", testTogether},
		{"OlderThanPart", testOlderThanPart},
		{"Follow", testFollow},
		{"Large", testLarge},
	},
}
