package conversation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/conversation"
	"github.com/lineage-store/lineage/lineage/lock"
)

func exportTo(t *testing.T, s *lineage.Store, root string, o conversation.ExportOptions) conversation.ExportReport {
	t.Helper()
	report, err := conversation.Export(bg, s, root, o)
	require.NoError(t, err)
	return report
}

// feature: branches/files-write
func TestExport(t *testing.T) {
	root, again := t.TempDir(), t.TempDir()
	files := map[string]string{
		"main.json":  branchJSON("main", "Main conversation", "", 0, "a", "b"),
		"child.json": branchJSON("child", "A child", "main", 1, "a", "c", "d"),
	}
	writeSession(t, root, "one", files)
	writeSession(t, root, "two", map[string]string{"main.json": `{"id":"main","name":"M","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"t"}]},` +
		`{"role":"user","content":[{"type":"text","text":"x"}]}],"createdAt":"2025-01-01T00:00:00.000Z","updatedAt":"2025-01-02T00:00:00.000Z","color":{"r":1.0},"<x>":"&"}`})
	s := storetest.NewTicking(t)
	importFrom(t, s, root)
	report := exportTo(t, s, again, conversation.ExportOptions{})
	require.Equal(t, conversation.ExportReport{Sessions: 2, Branches: 3}, report)
	same := func(path string) {
		want, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(again, path))
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), path)
	}
	for _, path := range []string{"one/main.json", "one/child.json", "two/main.json"} {
		same(path)
	}
	left, err := os.ReadDir(filepath.Join(again, "one"))
	require.NoError(t, err)
	require.Len(t, left, 2, "no temporary files")

	// Another store gets from the files what this one has, and both go on.
	c, err := conversation.Open(bg, s, "one", conversation.Options{})
	require.NoError(t, err)
	fork(t, c, "New idea")
	require.NoError(t, c.AddMessage(bg, user("e")))
	require.NoError(t, c.RenameBranch(bg, "child", "Renamed"))
	exportTo(t, s, again, conversation.ExportOptions{Sessions: []string{"one"}})
	other := storetest.NewTicking(t)
	require.Empty(t, importFrom(t, other, again).Skipped)
	theirs, err := conversation.Open(bg, other, "one", conversation.Options{})
	require.NoError(t, err)
	for _, id := range []string{"main", "child", "new-idea"} {
		require.Equal(t, saidOn(t, c, id), saidOn(t, theirs, id))
		ours, err := c.Branch(bg, id)
		require.NoError(t, err)
		its, err := theirs.Branch(bg, id)
		require.NoError(t, err)
		require.Equal(t, []any{ours.Name, ours.ParentID, ours.ParentMessageIndex}, []any{its.Name, its.ParentID, its.ParentMessageIndex})
		require.WithinDuration(t, ours.UpdatedAt, its.UpdatedAt, 0)
	}
}

// Whatever branches a conversation has, also empty ones, another store gets them from its files, whether it has some
// of them already or none.
func TestExportAndImportAnyBranches(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		root := filepath.Join(dir, strconv.Itoa(n))
		s, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer s.Close()
		other, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer other.Close()
		c := open(t, s)
		for round := range 2 {
			for i := range rapid.IntRange(0, 5).Draw(t, "changes") {
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					_, err := c.CreateBranch(bg, fmt.Sprint("empty", round, i), "Empty", nil)
					require.NoError(t, err)
				case 1:
					_, err := c.ForkFromMessage(bg, "From the start", 0)
					require.NoError(t, err)
				case 2:
					_, err := c.Fork(bg, "A fork")
					require.NoError(t, err)
				default:
					say(t, c, fmt.Sprint("message ", round, i))
				}
			}
			report, err := conversation.Export(bg, s, root, conversation.ExportOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Problems)
			imported, err := importer.Import(bg, other, archive.Path(root), importer.Options{})
			require.NoError(t, err)
			require.Empty(t, imported.Skipped)
			theirs := open(t, other)
			branches, err := c.Branches(bg)
			require.NoError(t, err)
			its, err := theirs.Branches(bg)
			require.NoError(t, err)
			require.Len(t, its, len(branches))
			for _, want := range branches {
				got, err := theirs.Branch(bg, want.ID)
				require.NoError(t, err)
				require.Equal(t, []any{want.Name, want.ParentID, want.ParentMessageIndex, want.MessageCount}, []any{got.Name, got.ParentID, got.ParentMessageIndex, got.MessageCount}, want.ID)
				require.Equal(t, saidOn(t, c, want.ID), saidOn(t, theirs, want.ID))
			}
			require.Empty(t, gathered(t, other.Verify(bg, lineage.VerifyOptions{Deep: true})))
		}
	})
}

func gathered[T any](t require.TestingT, all iter.Seq2[T, error]) (list []T) {
	for v, err := range all {
		require.NoError(t, err)
		list = append(list, v)
	}
	return list
}

// The file of a branch that was deleted is reported, and with Prune deleted. Other files stay.
func TestExportOfDeletedBranch(t *testing.T) {
	root := t.TempDir()
	s := storetest.NewTicking(t)
	c := open(t, s)
	say(t, c, "a")
	fork(t, c, "Idea")
	fork(t, c, "Other")
	exportTo(t, s, root, conversation.ExportOptions{})
	writeSession(t, root, "session", map[string]string{"notes.json": `{"id":"x"}`, "list.json": `[]`, "text.txt": "", "bad.json": "{"})
	require.NoError(t, c.DeleteBranch(bg, "idea"))
	require.NoError(t, c.RenameBranch(bg, "other", "Renamed"))
	report := exportTo(t, s, root, conversation.ExportOptions{})
	require.Len(t, report.Problems, 1)
	require.Equal(t, "idea.json", report.Problems[0].File)
	require.ErrorIs(t, report.Problems[0], lineage.ErrConflict)
	report = exportTo(t, s, root, conversation.ExportOptions{Prune: true})
	require.Equal(t, conversation.ExportReport{Sessions: 1, Branches: 2, Pruned: 1}, report)
	left, err := os.ReadDir(filepath.Join(root, "session"))
	require.NoError(t, err)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"bad.json", "list.json", "main.json", "notes.json", "other.json", "text.txt"}, names)
	importFrom(t, s, root)
	_, err = c.Branch(bg, "idea")
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

// A thread without a source id has no name for its folder, which is reported.
func TestExportWithoutSourceID(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	report := exportTo(t, s, t.TempDir(), conversation.ExportOptions{})
	require.Len(t, report.Problems, 1)
	require.Equal(t, thread.ID().String(), report.Problems[0].Session)
}

func TestExportOdd(t *testing.T) {
	s := storetest.NewTicking(t)
	c, err := conversation.Open(bg, s, "odd", conversation.Options{})
	require.NoError(t, err)
	_, err = c.CreateBranch(bg, "../escape", "Out", nil)
	require.NoError(t, err)
	require.NoError(t, c.AddMessage(bg, user("secret")))
	require.NoError(t, c.AddMessage(bg, user("kept")))
	require.NoError(t, s.Erase(bg, content.Sum([]byte("secret"))))
	_, err = c.CreateBranch(bg, "bytes", "Bytes", nil)
	require.NoError(t, err)
	_, err = c.Checkout(bg, "bytes")
	require.NoError(t, err)
	require.NoError(t, c.AddMessage(bg, user("\xff")))
	_, err = conversation.Open(bg, s, "a/b", conversation.Options{})
	require.NoError(t, err)

	root := filepath.Join(t.TempDir(), "made", "here")
	report := exportTo(t, s, root, conversation.ExportOptions{Sessions: []string{"odd", "a/b", "none"}})
	require.Equal(t, []int{1, 1}, []int{report.Sessions, report.Branches})
	require.Len(t, report.Problems, 4)
	for i, file := range []string{"../escape.json", "bytes.json", "", ""} {
		require.Error(t, report.Problems[i])
		require.Equal(t, file, report.Problems[i].File)
	}
	require.ErrorIs(t, report.Problems[0], lineage.ErrInvalid)
	require.ErrorIs(t, report.Problems[3], lineage.ErrNotFound)
	data, err := os.ReadFile(filepath.Join(root, "odd", "main.json"))
	require.NoError(t, err)
	var file struct{ Messages []map[string]any }
	require.NoError(t, json.Unmarshal(data, &file))
	require.Equal(t, []map[string]any{{"role": "user", "content": "", "erased": true}, {"role": "user", "content": "kept"}}, file.Messages)

	// Links are not followed out of the root, and a file that cannot be replaced stays.
	outside := t.TempDir()
	linked := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(linked, "odd")))
	_, err = conversation.Export(bg, s, linked, conversation.ExportOptions{Sessions: []string{"odd"}})
	require.Error(t, err)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A file that another manager has locked is left as it is, and reported.
//
// feature: branches/files-lock
func TestExportUnderLock(t *testing.T) {
	root := t.TempDir()
	s := storetest.NewTicking(t)
	c := open(t, s)
	say(t, c, "a")
	fork(t, c, "Idea")
	exportTo(t, s, root, conversation.ExportOptions{})
	main := filepath.Join(root, "session", "main.json")
	before, err := os.ReadFile(main)
	require.NoError(t, err)
	say(t, c, "b")
	require.NoError(t, lock.With(bg, main, lock.Options{}, func(context.Context) error {
		checkout(t, c, "main")
		say(t, c, "c")
		report := exportTo(t, s, root, conversation.ExportOptions{})
		require.Equal(t, 1, report.Branches)
		require.Len(t, report.Problems, 1)
		require.ErrorIs(t, report.Problems[0], lock.ErrHeld)
		require.Equal(t, "main.json", report.Problems[0].File)
		return nil
	}))
	after, err := os.ReadFile(main)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.Equal(t, 2, exportTo(t, s, root, conversation.ExportOptions{}).Branches)
	after, err = os.ReadFile(main)
	require.NoError(t, err)
	require.Contains(t, string(after), `"c"`)
	left, err := os.ReadDir(filepath.Join(root, "session"))
	require.NoError(t, err)
	require.Len(t, left, 2, "no locks")
}
