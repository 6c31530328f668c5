// Package chattest tests implementations of chat.Store: everything that the interface promises. The test of an
// implementation calls [Run].
package chattest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/chat"
)

// OpenFunc opens a store: an empty one the first time, later the same one again. close closes it.
type OpenFunc func(ctx context.Context) (s chat.Store, close func() error, err error)

// Config describes the implementation to test. The zero value of each field is the strictest, except for Search.
type Config struct {
	// New prepares a store that is removed when the test ends, and returns the function that opens it.
	New func(t testing.TB) OpenFunc
	// Search enables the tests of search.
	Search bool
	// Forgets states that the store loses its content when it is closed.
	Forgets bool
	// Reformats states that the store keeps the value of JSON but not its layout.
	Reformats bool
	// MaxID is the maximum number of characters of an id. If 0, it is chat.MaxID bytes.
	MaxID int
	// LongChain is the number of messages in the longest chain. Default 33,000, more than any database accepts as
	// parameters; with -short 2500.
	LongChain int
}

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

// store is a store under test.
type store struct {
	chat.Store
	config Config
	t      require.TestingT
	open   OpenFunc
	close  func() error
}

func newStore(t testing.TB, c Config) *store {
	s := &store{config: c, t: t, open: c.New(t)}
	s.start()
	t.Cleanup(func() { require.NoError(t, s.close()) })
	return s
}

func (s *store) start() {
	var err error
	s.Store, s.close, err = s.open(background)
	require.NoError(s.t, err)
}

// reopen closes and reopens the store.
func (s *store) reopen() {
	require.NoError(s.t, s.close())
	s.start()
}

var background = context.Background()
