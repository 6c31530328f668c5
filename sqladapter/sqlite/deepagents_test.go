package sqlite_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/internal/deepagents"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// dump is everything about a chat, from the TypeScript package or from this one.
type dump struct {
	Chat        *chat.Chat                `json:"chat"`
	Branches    []branchInfo              `json:"branches"`
	Chains      map[string][]chat.Message `json:"chains"`
	Checkpoints []chat.Checkpoint         `json:"checkpoints"`
	Graph       chat.Graph                `json:"graph"`
}

// branchInfo is a branch as the TypeScript package lists it, without its chat.
type branchInfo struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	HeadMessageID chat.Ref `json:"headMessageId"`
	IsActive      bool     `json:"isActive"`
	MessageCount  int      `json:"messageCount"`
	CreatedAt     int64    `json:"createdAt"`
}

func dumpOf(t *testing.T, s chat.Store, chatID string) dump {
	t.Helper()
	ctx := context.Background()
	d := dump{Chains: map[string][]chat.Message{}}
	var err error
	d.Chat, err = s.Chat(ctx, chatID)
	require.NoError(t, err)
	branches, err := s.ListBranches(ctx, chatID)
	require.NoError(t, err)
	for _, b := range branches {
		d.Branches = append(d.Branches, branchInfo{b.ID, b.Name, b.HeadMessageID, b.IsActive, b.MessageCount, b.CreatedAt})
		d.Chains[b.Name] = []chat.Message{}
		for m, err := range s.MessageChain(ctx, chatID, string(b.HeadMessageID)) {
			require.NoError(t, err)
			d.Chains[b.Name] = append(d.Chains[b.Name], m)
		}
	}
	d.Checkpoints, err = s.ListCheckpoints(ctx, chatID)
	require.NoError(t, err)
	for i := range d.Checkpoints {
		d.Checkpoints[i].ChatID = "" // missing in the package's output
	}
	if d.Checkpoints == nil {
		d.Checkpoints = []chat.Checkpoint{} // not null in JSON
	}
	d.Graph, err = s.Graph(ctx, chatID)
	require.NoError(t, err)
	return d
}

// same requires that both dumps are equal, with items of the same millisecond in any order.
func same(t *testing.T, theirs, ours dump) {
	t.Helper()
	a, err := json.Marshal(theirs.settled())
	require.NoError(t, err)
	b, err := json.Marshal(ours.settled())
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b))
}

// settled returns the dump with items of the same millisecond in order of name: both sides sort by
// time only. A chat is updated no earlier than its latest message; the package stores whole
// seconds.
func (d dump) settled() dump {
	if d.Chat != nil {
		now := *d.Chat
		for _, n := range d.Graph.Nodes {
			now.UpdatedAt = max(now.UpdatedAt, n.CreatedAt)
		}
		d.Chat = &now
	}
	branches, checkpoints := map[string]int64{}, map[string]int64{}
	for _, b := range d.Branches {
		branches[b.Name] = b.CreatedAt
	}
	for _, c := range d.Checkpoints {
		checkpoints[c.Name] = c.CreatedAt
	}
	d.Branches = settle(d.Branches, func(b branchInfo) (int64, string) { return b.CreatedAt, b.Name })
	d.Checkpoints = settle(d.Checkpoints, func(c chat.Checkpoint) (int64, string) { return c.CreatedAt, c.Name })
	d.Graph.Nodes = settle(d.Graph.Nodes, func(n chat.GraphNode) (int64, string) { return n.CreatedAt, n.ID })
	d.Graph.Branches = settle(d.Graph.Branches, func(b chat.GraphBranch) (int64, string) { return branches[b.Name], b.Name })
	d.Graph.Checkpoints = settle(d.Graph.Checkpoints, func(c chat.GraphCheckpoint) (int64, string) { return checkpoints[c.Name], c.Name })
	return d
}

// settle returns the items, with neighbours of the same time in order of name.
func settle[T any](items []T, of func(T) (at int64, name string)) []T {
	items = slices.Clone(items)
	for start := 0; start < len(items); {
		at, _ := of(items[start])
		end := start + 1
		for ; end < len(items); end++ {
			if next, _ := of(items[end]); next != at {
				break
			}
		}
		slices.SortFunc(items[start:end], func(a, b T) int {
			_, x := of(a)
			_, y := of(b)
			return strings.Compare(x, y)
		})
		start = end
	}
	return items
}

// hits returns the ids that a search finds.
func hits(t *testing.T, s chat.Store, chatID, query string) []string {
	t.Helper()
	found, err := s.SearchMessages(context.Background(), chatID, query, chat.SearchOptions{})
	require.NoError(t, err)
	ids := []string{}
	for _, f := range found {
		ids = append(ids, f.Message.ID)
	}
	return ids
}

// TestDeepAgents passes a file between the TypeScript package that documents the schema and this
// package: created there and extended here, and the reverse.
//
// feature: storage/sqlite
func TestDeepAgents(t *testing.T) {
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "context.db")
	ts := deepagents.New(t, deepagents.File(file))

	var written dump
	ts.Do(t, &written, "write", "birds")
	var store chat.Store
	open := func() *sqladapter.DB {
		db, err := sqlite.Open(ctx, file, sqladapter.Options{})
		require.NoError(t, err)
		store = sqlchat.On(db)
		return db
	}
	db := open()
	same(t, written, dumpOf(t, store, "birds"))
	require.Len(t, hits(t, store, "birds", "herons"), 1)
	require.Equal(t, []string{"tool-turn"}, hits(t, store, "birds", "belfry"), "tool output is searched too")
	require.Empty(t, hits(t, store, "birds", "parts"), "the keys of JSON are not text")

	// Extended here, with a new chat.
	active, err := store.ActiveBranch(ctx, "birds")
	require.NoError(t, err)
	require.Equal(t, "main-v2", active.Name)
	message := chat.Message{ID: "from-go", Name: "user", Type: chat.TypeMessage,
		Data: json.RawMessage(`{"id":"from-go","role":"user","parts":[{"type":"text","text":"What about <kestrels> & \"kites\"?"}]}`)}
	_, err = store.Append(ctx, chat.AppendRequest{ChatID: "birds", BranchID: active.ID, ExpectedHead: active.HeadMessageID, Messages: []chat.Message{message}})
	require.NoError(t, err)
	_, err = store.CreateCheckpoint(ctx, chat.Checkpoint{ChatID: "birds", Name: "ours", MessageID: "from-go"})
	require.NoError(t, err)
	_, err = store.CreateChat(ctx, chat.Chat{ID: "made-here", UserID: "grace", Title: "Made here", Metadata: json.RawMessage(`{"a":[1,2]}`)})
	require.NoError(t, err)
	active, err = store.ActiveBranch(ctx, "made-here")
	require.NoError(t, err)
	_, err = store.Append(ctx, chat.AppendRequest{ChatID: "made-here", BranchID: active.ID, Messages: []chat.Message{
		{ID: "g1", Name: "user", Type: chat.TypeMessage, Data: json.RawMessage(`{"id":"g1","role":"user","parts":[{"type":"text","text":"Count the otters"}]}`)},
		{ID: "g2", Name: "assistant", Type: chat.TypeMessage, Data: json.RawMessage(`{"id":"g2","role":"assistant","parts":[{"type":"text","text":"Eleven otters."}]}`)},
	}})
	require.NoError(t, err)
	birds, here := dumpOf(t, store, "birds"), dumpOf(t, store, "made-here")
	require.NoError(t, db.Close())

	// Read completely there, searched, and extended.
	var birdsThere, hereThere dump
	ts.Do(t, &birdsThere, "dump", "birds")
	same(t, birdsThere, birds)
	require.Equal(t, written.Chains["main"], birdsThere.Chains["main"])
	ts.Do(t, &hereThere, "dump", "made-here")
	same(t, hereThere, here)
	var found map[string][]string
	ts.Do(t, &found, "search", "birds", "kestrels", "herons")
	require.Equal(t, []string{"from-go"}, found["kestrels"])
	require.Len(t, found["herons"], 1)
	ts.Do(t, &found, "search", "made-here", "otters")
	require.ElementsMatch(t, []string{"g1", "g2"}, found["otters"])
	var extended struct {
		dump
		Before []string `json:"before"`
		Branch string   `json:"branch"`
		Head   string   `json:"head"`
	}
	ts.Do(t, &extended, "extend", "made-here", "grace", "And the marmots?")
	require.Equal(t, []string{"g1", "g2"}, extended.Before)
	require.Equal(t, "main", extended.Branch)

	// And here again.
	db = open()
	defer func() { require.NoError(t, db.Close()) }()
	same(t, extended.dump, dumpOf(t, store, "made-here"))
	require.Equal(t, []string{extended.Head}, hits(t, store, "made-here", "marmots"))
	same(t, birds, dumpOf(t, store, "birds"))
	branches, err := store.ListBranches(ctx, "made-here")
	require.NoError(t, err)
	require.Equal(t, 3, branches[0].MessageCount, "rows that others added are counted too")
	deleted, err := store.DeleteChat(ctx, "birds", chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, deleted, "a chat that both wrote can be deleted")
}

// TestDeepAgentsImport imports a file of the package into a store and projects it into another
// file, which the package reads like its own.
func TestDeepAgentsImport(t *testing.T) {
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "context.db")
	ts := deepagents.New(t, deepagents.File(file))
	var written dump
	ts.Do(t, &written, "write", "birds")

	theirs, err := sqlite.Open(ctx, file, sqladapter.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, theirs.Close()) }()
	store, err := lineage.Open(ctx, filepath.Join(t.TempDir(), "store"), lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	report, err := importing.Run(ctx, theirs, store, importing.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, int(report.Chats))
	same(t, written, dumpOf(t, chat.On(store), "birds"))

	copied := filepath.Join(t.TempDir(), "copy.db")
	ours, err := sqlite.Open(ctx, copied, sqladapter.Options{})
	require.NoError(t, err)
	_, err = (&project.Projector{Store: store, DB: ours}).Run(ctx)
	require.NoError(t, err)
	same(t, written, dumpOf(t, sqlchat.On(ours), "birds"))
	require.NoError(t, ours.Close())
	var again dump
	ts.On(deepagents.File(copied)).Do(t, &again, "dump", "birds")
	same(t, written, again)

	head, err := store.View().Head(ctx)
	require.NoError(t, err)
	_, err = importing.Run(ctx, theirs, store, importing.Options{})
	require.NoError(t, err)
	after, err := store.View().Head(ctx)
	require.NoError(t, err)
	require.Equal(t, head, after, "importing again adds nothing")
}
