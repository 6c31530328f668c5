// Package sqltest tests SQL databases beyond the chat operations, which package chattest tests:
// rows of other programs, several processes, equal search results in all databases.
package sqltest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
)

// Config configures a run.
type Config struct {
	// New returns a database that does not exist yet, which is removed at the end of the test.
	New func(t testing.TB) Database
	// NameOf returns the name of a database, by which Named finds it in another process.
	NameOf func(p Database) string
	Named  func(name string) Database
	// OpenWith opens a database with options.
	OpenWith func(ctx context.Context, p Database, o sqladapter.Options) (*sqladapter.DB, error)
	// Pool returns a pool of a host program, closed at the end of the test; WithPool opens the
	// database with it.
	Pool     func(t testing.TB, p Database) *sql.DB
	WithPool func(ctx context.Context, pool *sql.DB, o sqladapter.Options) (*sqladapter.DB, error)
	// Documented creates the documented tables of chats, as other programs do.
	Documented string
	// Dialect is the dialect of the database.
	Dialect sqladapter.Dialect
}

// Database is a database that may not exist yet.
type Database interface {
	// Open opens the database. It can be opened several times.
	Open(ctx context.Context) (*sqladapter.DB, error)
	// Exec runs a script as another program would.
	Exec(ctx context.Context, script string) error
}

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

var background = context.Background()

func open(t testing.TB, p Database) *sqladapter.DB {
	db, err := p.Open(background)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// text returns a message with a text.
func text(chatID, id string, parent chat.Ref, says string) chat.Message {
	data, _ := json.Marshal(map[string]any{"role": "user", "parts": []any{map[string]string{"type": "text", "text": says}}})
	return chat.Message{ID: id, ChatID: chatID, ParentID: parent, Name: "user", Type: chat.TypeMessage, Data: data, CreatedAt: 1700000000000}
}

// grow creates a chat with a chain of messages and returns its branch.
func grow(t testing.TB, s chat.Store, chatID string, count int) chat.Branch {
	_, err := s.CreateChat(background, chat.Chat{ID: chatID, UserID: "ada"})
	require.NoError(t, err)
	b, err := s.ActiveBranch(background, chatID)
	require.NoError(t, err)
	const step = 1000
	for at := 0; at < count; at += step {
		var messages []chat.Message
		for i := at; i < min(at+step, count); i++ {
			messages = append(messages, text(chatID, fmt.Sprint(chatID, ".", i), "", fmt.Sprintf("message number %d says what %d others said", i, i%97)))
		}
		b.HeadMessageID, err = s.Append(background, chat.AppendRequest{ChatID: chatID, BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: messages})
		require.NoError(t, err)
	}
	return *b
}
