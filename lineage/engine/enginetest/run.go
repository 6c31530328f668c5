package enginetest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run runs every test on the store.
func Run(t *testing.T, c Config) { tests.Run(t, c) }

// RunConcurrent runs the tests that the race detector is useful for: those with many engines or goroutines, and
// random calls.
func RunConcurrent(t *testing.T, c Config) { tests.RunConcurrent(t, c) }

// RunSequential runs the other tests, and with -short all.
func RunSequential(t *testing.T, c Config) { tests.RunSequential(t, c) }

var tests = campaign.Suite[Config, *store]{
	New: func(t *testing.T, c Config) *store { return &store{Store: c.New(t), t: t} },
	Sequential: campaign.Tests[*store]{
		{"a conversation", testConversation},
		{"routing", testRouting},
		{"refused fragments", testRefusedFragments},
		{"nothing to save", testNothingToSave},
		{"rows", testRows},
		{"what others wrote", testForeignRows},
		{"opening", testOpening},
		{"chats without an active branch", testNoActiveBranch},
		{"reopening", testReopening},
		{"chat updates", testUpdateChat},
		{"new version", testNewVersion},
		{"the same again", testSameAgain},
		{"new version of a root", testNewRoot},
		{"origins", testOrigins},
		{"a branch of its own", testBranch},
		{"pending messages", testPending},
		{"context that changes", testContext},
		{"placeholders", testPlaceholders},
		{"the last messages", testLast},
		{"budgets", testBudget},
		{"calls and results", testCalls},
		{"decoders", testDecode},
		{"several new versions", testSeveralVersions},
		{"versions before saving", testPendingVersions},
		{"ids of other chats", testOtherChat},
		{"neighbours", testNeighbours},
		{"last assistant", testLastAssistant},
		{"rewind", testRewind},
		{"aside", testAside},
		{"switch", testSwitch},
		{"checkpoint and restore", testCheckpoints},
		{"branching reads no chain", testBranchingReadsNoChain},
		{"branch names", testNames},
		{"graph", testGraph},
		{"deleted chat", testDeletedChat},
		{"failing saves", testFailingSaves},
		{"failing branches", testFailingBranches},
		{"failing openings", testFailingOpen},
		{"conflicts", testConflicts},
	},
	Concurrent: campaign.Tests[*store]{
		{"two engines", testTwoEngines},
		{"one id twice", testOneIDTwice},
		{"many engines", testManyEngines},
		{"many engines merge metadata", testMergingEngines},
		{"one engine, many goroutines", testOneEngine},
		{"late saves", testLateSaves},
		{"model", testModel},
	},
}
