package chattest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run runs all tests.
func Run(t *testing.T, c Config) {
	runTests(t, c, sequential)
	RunConcurrent(t, c)
}

// RunConcurrent runs the tests that the race detector is useful for: those with many goroutines, and random calls,
// which cover all operations.
func RunConcurrent(t *testing.T, c Config) { runTests(t, c, concurrent) }

// RunSequential runs the other tests: see campaign.Sequential.
func RunSequential(t *testing.T, c Config) {
	runTests(t, c, campaign.Sequential(sequential, concurrent))
}

func runTests(t *testing.T, c Config, tests []test) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newStore(t, c)) })
	}
}

type test struct {
	name string
	run  func(t *testing.T, s *store)
}

var sequential = []test{
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
}

var concurrent = []test{
	{"concurrent appends", testConcurrentAppends},
	{"concurrent adding", testConcurrentAdding},
	{"concurrent creation", testConcurrentCreation},
	{"concurrent deletion", testConcurrentDeletion},
	{"concurrent changes", testConcurrentChanges},
	{"model", testModel},
}
