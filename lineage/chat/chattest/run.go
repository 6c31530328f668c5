package chattest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run runs all tests.
func Run(t *testing.T, c Config) { tests.Run(t, c) }

// RunConcurrent runs the tests that the race detector is useful for: those with many goroutines, and random calls,
// which cover all operations.
func RunConcurrent(t *testing.T, c Config) { tests.RunConcurrent(t, c) }

// RunSequential runs the other tests, and with -short all.
func RunSequential(t *testing.T, c Config) { tests.RunSequential(t, c) }

var tests = campaign.Suite[Config, *store]{
	New: func(t *testing.T, c Config) *store { return newStore(t, c) },
	Sequential: campaign.Tests[*store]{
		{"chats", testChats},
		{"upsert", testUpsert},
		{"chat updates", testUpdateChat},
		{"chat changes", testChangeChat},
		{"chat users", testChatUsers},
		{"chat lists", testListChats},
		{"chat pages", testChatPages},
		{"metadata filter", testMetadataFilter},
		{"update order", testUpdateOrder},
		{"chat deletion", testDeleteChat},
		{"messages", testMessages},
		{"message trees", testTrees},
		{"known messages", testKnownMessages},
		{"refused messages", testRefusedMessages},
		{"any JSON", testAnyJSON},
		{"NUL", testNUL},
		{"odd ids", testOddIDs},
		{"ids that are no text", testNotText},
		{"long chains", testLongChain},
		{"branches", testBranches},
		{"refused branches", testRefusedBranches},
		{"active branch", testActiveBranch},
		{"branch heads", testBranchHeads},
		{"checkpoints", testCheckpoints},
		{"order of creation", testOrder},
		{"append", testAppend},
		{"append to a new branch", testAppendNewBranch},
		{"append is atomic", testAppendAtomic},
		{"neighbours", testNeighbours},
		{"origins", testOrigins},
		{"graph", testGraph},
		{"search", testSearch},
		{"reopening", testReopening},
	},
	Concurrent: campaign.Tests[*store]{
		{"concurrent appends", testConcurrentAppends},
		{"concurrent adding", testConcurrentAdding},
		{"concurrent creation", testConcurrentCreation},
		{"concurrent deletion", testConcurrentDeletion},
		{"concurrent changes", testConcurrentChanges},
		{"model", testModel},
	},
}
