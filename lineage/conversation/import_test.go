package conversation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/conversation"
)

// writeSession writes files of a session, by their names.
func writeSession(t *testing.T, root, id string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(root, id)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

// branchJSON returns a branch file as their writers lay it out.
func branchJSON(id, name, parent string, index int, contents ...string) string {
	var messages []string
	for _, c := range contents {
		messages = append(messages, fmt.Sprintf(`    { "role": "user", "content": %q }`, c))
	}
	from := ""
	if parent != "" {
		from = fmt.Sprintf("\n  \"parentId\": %q,\n  \"parentMessageIndex\": %d,", parent, index)
	}
	return fmt.Sprintf("{\n  \"id\": %q,\n  \"name\": %q,%s\n  \"messages\": [\n%s\n  ],\n"+
		"  \"createdAt\": \"2025-03-01T10:00:0%d.000Z\",\n  \"updatedAt\": \"2025-03-02T10:00:0%d.000Z\"\n}\n",
		id, name, from, strings.Join(messages, ",\n"), len(contents), len(contents))
}

// importFrom imports the sessions of a folder.
func importFrom(t *testing.T, s *lineage.Store, root string) importer.Report {
	t.Helper()
	report, err := importer.Import(bg, s, archive.Path(root), importer.Options{UserID: "ada"})
	require.NoError(t, err)
	return report
}

func saidOn(t require.TestingT, c *conversation.Conversation, id string) []string {
	messages, err := c.MessagesOf(bg, id)
	require.NoError(t, err)
	return contents(messages)
}

// What package archive imports of branch files is a conversation, which goes on here.
//
// feature: branches/files-read
func TestImport(t *testing.T) {
	root, s := t.TempDir(), storetest.NewTicking(t)
	writeSession(t, root, "one", map[string]string{
		"main.json":      branchJSON("main", "First", "", 0, "a", "b", "c"),
		"branch_x.json":  branchJSON("branch_x", "Try x", "main", 2, "a", "b", "X", "Y"),
		"a.json":         branchJSON("a", "Deeper", "branch_x", 3, "a", "b", "X", "Z", "!"),
		"alone.json":     branchJSON("alone", "Alone", "", 0, "q", "q"),
		"orphan.json":    branchJSON("orphan", "Orphan", "gone", 1, "o"),
		"main.json.lock": `{"pid":1}`,
		"damaged.json":   branchJSON("damaged", "Damaged", "main", 1, "a", "b")[:60],
	})
	report := importFrom(t, s, root)
	require.EqualValues(t, 1, report.Conversations)
	require.EqualValues(t, 3+2+2+2+1, report.NewMessages)
	require.Equal(t, []string{"one/damaged.json", "one/main.json.lock"}, report.Ignored)

	c, err := conversation.Open(bg, s, "one", conversation.Options{})
	require.NoError(t, err)
	info, err := c.Thread().Info(bg)
	require.NoError(t, err)
	require.Equal(t, "ada", info.UserID)
	require.Equal(t, conversation.Main, currentID(t, c))
	require.Equal(t, []string{"a", "b", "c"}, saidOn(t, c, "main"))
	require.Equal(t, []string{"a", "b", "X", "Y"}, saidOn(t, c, "branch_x"))
	require.Equal(t, []string{"a", "b", "X", "Z", "!"}, saidOn(t, c, "a"))
	at := func(month time.Month, day, second int) time.Time {
		return time.Date(2025, month, day, 10, 0, second, 0, time.UTC)
	}
	for _, want := range []conversation.Branch{
		{ID: "main", Name: "First", Current: true, MessageCount: 3, CreatedAt: at(3, 1, 3), UpdatedAt: at(3, 2, 3)},
		{ID: "branch_x", Name: "Try x", ParentID: "main", ParentMessageIndex: 2, MessageCount: 4, CreatedAt: at(3, 1, 4), UpdatedAt: at(3, 2, 4)},
		{ID: "a", Name: "Deeper", ParentID: "branch_x", ParentMessageIndex: 3, MessageCount: 5, CreatedAt: at(3, 1, 5), UpdatedAt: at(3, 2, 5)},
		{ID: "alone", Name: "Alone", MessageCount: 2, CreatedAt: at(3, 1, 2), UpdatedAt: at(3, 2, 2)},
		{ID: "orphan", Name: "Orphan", ParentID: "gone", ParentMessageIndex: 1, MessageCount: 1, CreatedAt: at(3, 1, 1), UpdatedAt: at(3, 2, 1)},
	} {
		got, err := c.Branch(bg, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	all, err := c.Branches(bg)
	require.NoError(t, err)
	require.Equal(t, "a", all[0].ID, "newest update first, as in the files")
	history, err := c.History(bg, "a")
	require.NoError(t, err)
	require.Len(t, history, 3)
	tree, err := c.Tree(bg)
	require.NoError(t, err)
	require.Len(t, tree, 3, "main, and those without a parent")

	// What is done here stays, and what the files have more is added.
	checkout(t, c, "branch_x")
	say(t, c, "went on here")
	x, err := c.Branch(bg, "branch_x")
	require.NoError(t, err)
	require.Greater(t, x.UpdatedAt.Year(), 2025)
	require.NoError(t, c.RenameBranch(bg, "branch_x", "My name"))
	writeSession(t, root, "one", map[string]string{"main.json": branchJSON("main", "First", "", 0, "a", "b", "c", "d")})
	require.EqualValues(t, 1, importFrom(t, s, root).NewMessages)
	require.Equal(t, []string{"a", "b", "c", "d"}, saidOn(t, c, "main"))
	require.Equal(t, []string{"a", "b", "X", "Y", "went on here"}, said(t, c))
	x, err = c.Branch(bg, "branch_x")
	require.NoError(t, err)
	require.Equal(t, []any{"My name", "main", 2, true}, []any{x.Name, x.ParentID, x.ParentMessageIndex, x.Current})
	require.Equal(t, at(3, 1, 4), x.CreatedAt)

	// A branch that gets the id of an imported one is another branch.
	require.NoError(t, c.DeleteBranch(bg, "orphan"))
	made, err := c.CreateBranch(bg, "orphan", "New", nil)
	require.NoError(t, err)
	require.Empty(t, made.ParentID)
	require.Greater(t, made.CreatedAt.Year(), 2025)
}

// The main branch is current also where it is empty, and a branch that was empty is continued by a later import.
func TestImportEmptyBranches(t *testing.T) {
	root, s := t.TempDir(), storetest.NewTicking(t)
	writeSession(t, root, "one", map[string]string{
		"main.json": branchJSON("main", "First", "", 0), "a.json": branchJSON("a", "A", "main", 0, "x"), "b.json": branchJSON("b", "B", "a", 0),
	})
	importFrom(t, s, root)
	c, err := conversation.Open(bg, s, "one", conversation.Options{})
	require.NoError(t, err)
	require.Equal(t, "main", currentID(t, c))
	b, err := c.Branch(bg, "b")
	require.NoError(t, err)
	require.Equal(t, []any{"B", "a", 0}, []any{b.Name, b.ParentID, b.MessageCount})
	require.Zero(t, importFrom(t, s, root).NewMessages)
	writeSession(t, root, "one", map[string]string{"b.json": branchJSON("b", "B", "a", 0, "y"), "main.json": branchJSON("main", "First", "", 0, "z")})
	importFrom(t, s, root)
	require.Equal(t, []string{"y"}, saidOn(t, c, "b"))
	require.Equal(t, []string{"z"}, saidOn(t, c, "main"))
	branches, err := c.Branches(bg)
	require.NoError(t, err)
	require.Len(t, branches, 3)
}

// A name that was changed in a file arrives, unless the branch was renamed here later. One that was changed here stays
// while its file has the name that it had.
func TestImportNames(t *testing.T) {
	root, s := t.TempDir(), storetest.NewTicking(t)
	file := func(id, name, updated string, contents ...string) {
		text := branchJSON(id, name, "", 0, contents...)
		writeSession(t, root, "one", map[string]string{id + ".json": strings.Replace(text, fmt.Sprintf("2025-03-02T10:00:0%d", len(contents)), updated, 1)})
	}
	file("main", "First", "2025-03-02T10:00:00", "a")
	file("b", "B", "2025-03-02T10:00:00", "a", "b")
	file("empty", "Empty", "2025-03-02T10:00:00")
	importFrom(t, s, root)
	c, err := conversation.Open(bg, s, "one", conversation.Options{})
	require.NoError(t, err)
	require.NoError(t, c.RenameBranch(bg, "b", "Ours"))
	later := "2999-01-01T10:00:0"
	file("main", "Changed", later+"1", "a")
	file("b", "B", later+"1", "a", "b", "c")
	file("empty", "Filled", later+"1")
	requireNames := func(want map[string]string) {
		t.Helper()
		for range 2 {
			importFrom(t, s, root)
			for id, name := range want {
				b, err := c.Branch(bg, id)
				require.NoError(t, err)
				require.Equal(t, name, b.Name, id)
			}
		}
	}
	requireNames(map[string]string{"main": "Changed", "b": "Ours", "empty": "Filled"})
	require.Equal(t, []string{"a", "b", "c"}, saidOn(t, c, "b"))
	file("b", "Theirs", later+"2", "a", "b", "c", "d")
	file("main", "Older", "2025-03-02T09:00:00", "a")
	requireNames(map[string]string{"main": "Changed", "b": "Theirs", "empty": "Filled"})
	require.Equal(t, []string{"a", "b", "c", "d"}, saidOn(t, c, "b"))
}

func TestImportKeepsMessages(t *testing.T) {
	root, s := t.TempDir(), storetest.NewTicking(t)
	writeSession(t, root, "s", map[string]string{"main.json": `{"id":"main","name":"Main conversation","messages":[
		{"role":"system","content":"Be brief <now>"},
		{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:,"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"ls","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"t1","content":"a\nb","n":1.50}],
		"createdAt":"2025-03-01T10:00:00.000Z","updatedAt":"2025-03-01T10:00:00.000Z"}`})
	importFrom(t, s, root)
	c, err := conversation.Open(bg, s, "s", conversation.Options{})
	require.NoError(t, err)
	messages, err := c.Messages(bg)
	require.NoError(t, err)
	require.Len(t, messages, 4)
	require.Equal(t, conversation.Message{Role: "system", Content: "Be brief <now>"}, messages[0])
	require.Equal(t, `[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:,"}}]`, string(messages[1].Fields["content"]))
	require.Equal(t, `null`, string(messages[2].Fields["content"]))
	require.Contains(t, string(messages[2].Fields["tool_calls"]), `"arguments":"{}"`)
	require.Equal(t, "a\nb", messages[3].Content)
	require.Equal(t, `1.50`, string(messages[3].Fields["n"]))
	require.Zero(t, importFrom(t, s, root).NewMessages)
}
