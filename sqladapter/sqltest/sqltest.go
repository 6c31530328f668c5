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
