package sqltest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run runs all tests.
func Run(t *testing.T, c Config) { tests.Run(t, c) }

// RunConcurrent runs the tests that the race detector is useful for: those with many goroutines.
func RunConcurrent(t *testing.T, c Config) { tests.RunConcurrent(t, c) }

// RunSequential runs the other tests, and with -short all.
func RunSequential(t *testing.T, c Config) { tests.RunSequential(t, c) }

var tests = campaign.Suite[Config, Config]{
	New: func(_ *testing.T, c Config) Config { return c },
	Sequential: campaign.Tests[Config]{
		{"many processes change one chat", testChangingProcesses},
		{"other programs' rows", testAdopted},
		{"other programs' tables", testForeign},
		{"names that are no tables", testNotTables},
		{"a newer version", testNewer},
		{"tables are kept", testKeepTables},
		{"search", testSearch},
		{"search is the same after reopening", testSearchReopened},
		{"search in all chats", testSearchAllChats},
		{"search in all chats of a user", testSearchAllOfUser},
		{"search in what others change", testSearchChanged},
		{"search in a chat that was made again", testSearchMadeAgain},
		{"origins of what others delete", testOriginsOfDeleted},
		{"chains that others change", testChains},
		{"chains into other chats", testChainsIntoOtherChats},
		{"branches of a long chat", testBranching},
		{"search in a long message", testSearchLong},
		{"a large chat is deleted in parts", testDeletingInParts},
		{"a large chat that another refers to", testDeletingReferred},
		{"a large chat of another program", testLargeChatOfAnother},
		{"long ids", testLongIDs},
		{"titles", testTitles},
	},
	Concurrent: campaign.Tests[Config]{
		{"opening together", testOpeningTogether},
		{"two processes", testTwoProcesses},
		{"a pool of the caller's", testSharedPool},
		{"few connections", testConnections},
	},
}
