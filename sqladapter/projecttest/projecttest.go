// Package projecttest tests projections into a kind of database: their result must be correct after
// any changes of the store, whenever the projector runs and wherever it is interrupted.
package projecttest

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Database exists until the end of the test.
type Database struct {
	Open func(ctx context.Context, o sqladapter.Options) (*sqladapter.DB, error)
	// SQL gives direct access to the tables. Statements name documented columns without quotes.
	SQL *sql.DB
}

// Config describes the kind of database.
type Config struct {
	// New creates an empty database.
	New func(t testing.TB) Database
	// Checks is the number of random histories, unless -rapid.checks is set. Default 10.
	Checks int
	// Large is the number of messages of a large chat. Default 3000.
	Large int
}

// check is like rapid.Check, with as many checks as the database can handle: each creates several
// databases.
func (s *suite) check(t *testing.T, property func(*rapid.T)) {
	defer campaign.Checks(cmp.Or(s.Checks, 10))()
	rapid.Check(t, property)
}

type suite struct{ Config }

var bg = context.Background()

// tables are the tables whose rows must depend only on the state of the store.
var tables = []string{"chats", "messages", "lineage_origins", "branches", "checkpoints", "messages_fts"}

var lineageTables = []string{"users", "content_blocks", "span_sets", "spans", "contexts", "message_usages", "lineage_orphans", "lineage_values", "lineage_summaries"}

var trackTables = []string{"lineage_scopes", "lineage_reach", "lineage_pins", "lineage_left_out"}

// dump returns all rows of the tables, in a deterministic order.
func dump(t require.TestingT, database Database, chatsOnly bool) map[string][]string {
	rows := make(map[string][]string)
	list := append(slices.Clone(tables), trackTables...)
	if !chatsOnly {
		list = append(list, lineageTables...)
	}
	for _, table := range list {
		rows[table] = dumpTable(t, database, table)
	}
	return rows
}

func dumpTable(t require.TestingT, database Database, table string) []string {
	found, err := database.SQL.QueryContext(bg, `SELECT * FROM "`+table+`"`)
	require.NoError(t, err)
	defer found.Close()
	columns, err := found.Columns()
	require.NoError(t, err)
	lines := []string{}
	for found.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, found.Scan(into...))
		var line strings.Builder
		for i, value := range values {
			if b, ok := value.([]byte); ok {
				value = "x" + hex.EncodeToString(b)
			}
			if columns[i] != "content_vector" && columns[i] != "seen_span_id" { // a collection may have deleted the span

				fmt.Fprintf(&line, "%s=%v|", columns[i], value)
			}
		}
		lines = append(lines, line.String())
	}
	require.NoError(t, found.Err())
	slices.Sort(lines)
	return lines
}

// requireSame compares dumps table by table, for readable differences.
func requireSame(t require.TestingT, want, got map[string][]string) {
	require.Len(t, got, len(want))
	for table := range want {
		require.Equal(t, want[table], got[table], table)
	}
}

func (s *suite) open(t require.TestingT, database Database) *sqladapter.DB {
	db, err := database.Open(bg, sqladapter.Options{})
	require.NoError(t, err)
	return db
}

// rebuilt returns the rows of a new database after a single projection.
func (s *suite) rebuilt(t testing.TB, store *lineage.Store, chatsOnly bool) map[string][]string {
	database := s.New(t)
	db := s.open(t, database)
	defer db.Close()
	_, err := (&project.Projector{Store: store, DB: db, ChatsOnly: chatsOnly}).Run(bg)
	require.NoError(t, err)
	return dump(t, database, chatsOnly)
}

func newStore(t testing.TB) *lineage.Store {
	store, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// requireChats compares the chats of the database with those of the store.
func requireChats(t require.TestingT, store *lineage.Store, db *sqladapter.DB) {
	want, got := chat.On(store), sqlchat.On(db)
	for info, err := range want.ListChats(bg, chat.ListOptions{}) {
		require.NoError(t, err)
		found, err := got.Chat(bg, info.ID)
		require.NoError(t, err)
		require.NotNil(t, found, info.ID)
		require.Equal(t, info.UserID, found.UserID)
		require.Equal(t, info.UpdatedAt, found.UpdatedAt)
		wantGraph, err := want.Graph(bg, info.ID)
		require.NoError(t, err)
		gotGraph, err := got.Graph(bg, info.ID)
		require.NoError(t, err)
		for _, nodes := range [][]chat.GraphNode{wantGraph.Nodes, gotGraph.Nodes} {
			for i := range nodes {
				if text := nodes[i].Content; strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
					nodes[i].Content = "JSON" // databases keep only its value
				}
			}
		}
		byID := func(a, b chat.GraphNode) int { return strings.Compare(a.ID, b.ID) }
		slices.SortFunc(wantGraph.Nodes, byID)
		slices.SortFunc(gotGraph.Nodes, byID)
		byName := func(a, b chat.GraphBranch) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(wantGraph.Branches, byName)
		slices.SortFunc(gotGraph.Branches, byName)
		require.Equal(t, wantGraph.Nodes, gotGraph.Nodes)
		require.Equal(t, wantGraph.Branches, gotGraph.Branches)
		require.ElementsMatch(t, wantGraph.Checkpoints, gotGraph.Checkpoints)
		for _, node := range wantGraph.Nodes {
			wantMessage, err := want.Message(bg, wantGraph.ChatID, node.ID)
			require.NoError(t, err)
			gotMessage, err := got.Message(bg, gotGraph.ChatID, node.ID)
			require.NoError(t, err)
			require.NotNil(t, wantMessage, node.ID)
			require.NotNil(t, gotMessage, node.ID)
			require.True(t, wantMessage.Same(*gotMessage), "%+v\n%+v", wantMessage, gotMessage)
			require.Equal(t, wantMessage.CreatedAt, gotMessage.CreatedAt)
		}
	}
}

// exec runs a statement as another program would.
func exec(t require.TestingT, database Database, format string, args ...any) {
	_, err := database.SQL.ExecContext(bg, fmt.Sprintf(format, args...))
	require.NoError(t, err, format, args)
}

// filled returns a new database with the projection of a store.
func (s *suite) filled(t testing.TB, store *lineage.Store) *sqladapter.DB {
	db := s.open(t, s.New(t))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s.project(t, store, db)
	return db
}

// same projects a store, and compares with a new database.
func (s *suite) same(t testing.TB, store *lineage.Store, database Database, db *sqladapter.DB) {
	t.Helper()
	s.project(t, store, db)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	require.Empty(t, differences(t, store, db))
}
