package projecttest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run runs all tests.
func Run(t *testing.T, config Config) {
	runTests(t, config, sequential)
	RunConcurrent(t, config)
}

// RunConcurrent runs the tests that the race detector is useful for: those with several projectors at once, a chat
// whose messages are indexed by several goroutines, and random histories.
func RunConcurrent(t *testing.T, config Config) { runTests(t, config, concurrent) }

// RunSequential runs the other tests: see campaign.Sequential.
func RunSequential(t *testing.T, config Config) {
	runTests(t, config, campaign.Sequential(sequential, concurrent))
}

func runTests(t *testing.T, config Config, tests []test) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(&suite{config}, t) })
	}
}

type test struct {
	name string
	run  func(*suite, *testing.T)
}

var sequential = []test{
	{"Rows", (*suite).testRows},
	{"Follows", (*suite).testFollows},
	{"RandomChatsOnly", (*suite).testRandomChatsOnly},
	{"RandomSharedIDs", (*suite).testRandomSharedIDs},
	{"Interrupted", (*suite).testInterrupted},
	{"InterruptedAgain", (*suite).testInterruptedAgain},
	{"RewoundAfterInterruption", (*suite).testRewoundAfterInterruption},
	{"ErasedBefore", (*suite).testErasedBefore},
	{"Derived", (*suite).testDerived},
	{"DerivedChatsOnly", (*suite).testDerivedChatsOnly},
	{"OlderSnapshot", (*suite).testOlderSnapshot},
	{"Refuses", (*suite).testRefuses},
	{"Shrinks", (*suite).testShrinks},
	{"StoredAgain", (*suite).testStoredAgain},
	{"Checkpoints", (*suite).testCheckpoints},
	{"Users", (*suite).testUsers},
	{"Owners", (*suite).testOwners},
	{"Texts", (*suite).testTexts},
	{"NUL", (*suite).testNUL},
	{"LeftOut", (*suite).testLeftOut},
	{"LeftOutRefused", (*suite).testLeftOutRefused},
	{"LeftOutTaken", (*suite).testLeftOutTaken},
	{"LeftOutTakenMessage", (*suite).testLeftOutTakenMessage},
	{"LeftOutRandom", (*suite).testLeftOutRandom},
	{"Queries", (*suite).testQueries},
	{"Compare", (*suite).testCompare},
	{"CompareEmpty", (*suite).testCompareEmpty},
	{"Import", (*suite).testImport},
	{"ImportContexts", (*suite).testImportContexts},
	{"Remnants", (*suite).testRemnants},
	{"RemnantsAgain", (*suite).testRemnantsAgain},
	{"RemnantsRandom", (*suite).testRemnantsRandom},
	{"Values", (*suite).testValues},
	{"Summaries", (*suite).testSummaries},
	{"SummariesOfBranches", (*suite).testSummariesOfBranches},
	{"ImportUsers", (*suite).testImportUsers},
	{"ImportProblems", (*suite).testImportProblems},
	{"ImportRandom", (*suite).testImportRandom},
	{"Lossless", (*suite).testLossless},
	{"ErasedPieces", (*suite).testErasedPieces},
	{"ImportDamaged", (*suite).testImportDamaged},
	{"Diverged", (*suite).testDiverged},
	{"ImportLarge", (*suite).testImportLarge},
	{"ImportChanged", (*suite).testImportChanged},
	{"ImportChangedRandom", (*suite).testImportChangedRandom},
	{"BehindEarlier", (*suite).testBehindEarlier},
	{"ImportReserved", (*suite).testImportReserved},
}

var concurrent = []test{
	{"Random", (*suite).testRandom},
	{"Concurrent", (*suite).testConcurrent},
	{"LeftOutTogether", (*suite).testLeftOutTogether},
	{"Together", (*suite).testTogether},
	{"OlderThanPart", (*suite).testOlderThanPart},
	{"Follow", (*suite).testFollow},
	{"Large", (*suite).testLarge},
}
