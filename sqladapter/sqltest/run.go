package sqltest

import (
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

// Run runs all tests.
func Run(t *testing.T, c Config) {
	runTests(t, c, sequential)
	RunConcurrent(t, c)
}

// RunConcurrent runs the tests that the race detector is useful for: those with many goroutines.
func RunConcurrent(t *testing.T, c Config) { runTests(t, c, concurrent) }

// RunSequential runs the other tests: see campaign.Sequential.
func RunSequential(t *testing.T, c Config) {
	runTests(t, c, campaign.Sequential(sequential, concurrent))
}

func runTests(t *testing.T, c Config, tests []test) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

type test struct {
	name string
	run  func(t *testing.T, c Config)
}

var sequential = []test{
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
}

var concurrent = []test{
	{"opening together", testOpeningTogether},
	{"two processes", testTwoProcesses},
	{"a pool of the caller's", testSharedPool},
	{"few connections", testConnections},
}
