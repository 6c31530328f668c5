// Package chattest checks that an implementation of chat.Store does what the
// interface says. A test of one is a call of [Run].
package chattest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// OpenFunc opens a store: empty the first time, later with what it held when it
// was closed. close lets go of it.
type OpenFunc func(ctx context.Context) (s chat.Store, close func() error, err error)

// Config says what to test. A field's zero value promises the most, except for
// Search.
type Config struct {
	// New makes room for a store that goes when the test ends, and returns what
	// opens it.
	New func(t testing.TB) OpenFunc
	// Search says that the store can search. Tests of it are skipped otherwise.
	Search bool
	// Forgets says that a store that is closed loses what it held.
	Forgets bool
	// Reformats says that the store keeps the value of JSON, not its layout.
	Reformats bool
	// MaxID is the most characters of an id; 0 is chat.MaxID bytes.
	MaxID int
	// LongChain is how many messages the longest chain has. Default 33,000, which is
	// more than any database takes parameters. With -short it is 2500.
	LongChain int
}

// Run runs every test against the implementation.
func Run(t *testing.T, c Config) {
	runTests(t, c, sequential)
	RunConcurrent(t, c)
}

// RunConcurrent runs what the race detector has something to find in: the tests with many goroutines, and random
// calls, which go through all operations.
func RunConcurrent(t *testing.T, c Config) { runTests(t, c, concurrent) }

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

// reopen closes the store and opens it again.
func (s *store) reopen() {
	require.NoError(s.t, s.close())
	s.start()
}

var background = context.Background()
