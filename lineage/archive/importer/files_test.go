package importer_test

import (
	"context"
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
	"github.com/lineage-store/lineage/structure"
)

// A file that was imported before is read again when something may have changed, and only then.
func TestUnchangedFilesAreNotReadAgain(t *testing.T) {
	ctx := context.Background()
	s, dir, at := storetest.New(t), t.TempDir(), time.Now().Add(-time.Hour)
	write := func(name, content string) {
		at = at.Add(time.Second)
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	importInto := func(s *lineage.Store, machine string, o importer.Options) importer.Report {
		t.Helper()
		var err error
		o.Files, err = importer.FilesOf(ctx, s, machine, dir)
		require.NoError(t, err)
		report, err := importer.Import(ctx, s, archive.Path(dir), o)
		require.NoError(t, err)
		return report
	}
	requireRead := func(conversations, unchanged, messages int64) {
		t.Helper()
		report := importInto(s, "m", importer.Options{})
		require.Equal(t, []int64{conversations, unchanged, messages}, []int64{report.Conversations, report.Unchanged, report.NewMessages})
		report = importInto(s, "m", importer.Options{})
		require.EqualValues(t, unchanged+conversations, report.Unchanged, "again")
		require.Zero(t, report.Conversations)
	}
	const one, two, three = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"
	session := func(id string, answers string) string { return copiedSession(id, id[:1], 1, answers) }
	write("a/"+one+".jsonl", session(one, "ab"))
	write("b/"+two+".jsonl", session(two, "xy"))
	requireRead(2, 0, 10)

	write("b/"+two+".jsonl", session(two, "xyz")) // longer
	requireRead(1, 1, 2)
	write("b/"+two+".jsonl", session(two, "xyz")) // another time
	requireRead(1, 1, 0)
	write("c/"+three+".jsonl", session(three, "u"))
	requireRead(1, 2, 3)

	thread, err := s.FindThread(ctx, one) // an import brings a deleted thread back
	require.NoError(t, err)
	require.NoError(t, thread.Delete(ctx))
	requireRead(1, 2, 5)

	write("d/"+one+".jsonl", session(one, "abc")) // the other file of a thread is read with this one
	importInto(s, "m", importer.Options{})
	write("d/"+one+".jsonl", session(one, "abcd"))
	require.EqualValues(t, 2, importInto(s, "m", importer.Options{}).Unchanged)

	require.EqualValues(t, 4, importInto(s, "m", importer.Options{}).Unchanged)
	require.Zero(t, importInto(s, "another machine", importer.Options{}).Unchanged)
	require.Zero(t, importInto(s, "m", importer.Options{Prefix: "p-"}).Unchanged)
	require.Zero(t, importInto(storetest.New(t), "m", importer.Options{}).Unchanged)
	require.NoError(t, os.Remove(filepath.Join(dir, "c", three+".jsonl")))

	// A file of which something was left out says so each time, and so does one that may still change.
	write("e/broken.jsonl", session(two, "")+"{broken\n"+strings.Repeat("\n", 3)+session(two, "q"))
	for range 2 {
		require.EqualValues(t, 1, importInto(s, "m", importer.Options{}).SkippedCount)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "e", "broken.jsonl")))
	at = time.Now().Add(time.Hour)
	importInto(s, "m", importer.Options{})
	path := filepath.Join(dir, "a", one+".jsonl")
	require.NoError(t, os.Chtimes(path, time.Now(), time.Now()))
	importInto(s, "m", importer.Options{})
	report := importInto(s, "m", importer.Options{})
	require.LessOrEqual(t, report.Unchanged, int64(3))
	requireSound(t, s)
}

// A file of many conversations, whose state is larger than a value that is stored within its record, is not read again either, until it or
// one of its threads has changed.
func TestFileOfManyConversations(t *testing.T) {
	ctx := context.Background()
	s, path, at := storetest.New(t), filepath.Join(t.TempDir(), "chats.jsonl"), time.Now().Add(-time.Hour)
	const conversations = 2500
	var lines strings.Builder
	for i := range conversations {
		fmt.Fprintf(&lines, `{"messages":[{"role":"user","content":"Hello %d"}]}`+"\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o600))
	require.NoError(t, os.Chtimes(path, at, at))
	read := func() int64 {
		files, err := importer.FilesOf(ctx, s, "m", path)
		require.NoError(t, err)
		report, err := importer.Import(ctx, s, archive.Path(path), importer.Options{Files: files})
		require.NoError(t, err)
		return report.Conversations
	}
	require.EqualValues(t, conversations, read())
	require.Zero(t, read())
	require.Zero(t, read())
	for l, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		require.NoError(t, l.Delete(ctx))
		break
	}
	require.EqualValues(t, conversations, read())
	require.Zero(t, read())
}

// States that are large together are stored in several commits: the size of a commit is limited.
func TestStatesOfFilesInSeveralCommits(t *testing.T) {
	defer importer.SetSavedBytes(importer.SetSavedBytes(1))
	ctx := context.Background()
	s, dir, at := storetest.New(t), t.TempDir(), time.Now().Add(-time.Hour)
	const files = 3
	for i := range files {
		path := filepath.Join(dir, fmt.Sprint(i, ".jsonl"))
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"messages":[{"role":"user","content":"Hello %d"}]}`+"\n", i), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	read := func() int64 {
		known, err := importer.FilesOf(ctx, s, "m", dir)
		require.NoError(t, err)
		report, err := importer.Import(ctx, s, archive.Path(dir), importer.Options{Files: known})
		require.NoError(t, err)
		return report.Conversations
	}
	require.EqualValues(t, files, read())
	commits := 0
	for c, err := range s.View().Feed(ctx, lineage.Cursor{}) {
		require.NoError(t, err)
		for _, r := range c.Records {
			if _, isState := r.(*structure.Value); isState {
				commits++
				break
			}
		}
	}
	require.Equal(t, files, commits)
	require.Zero(t, read())
}

func TestReadingAgainMakesNoCommit(t *testing.T) {
	ctx := context.Background()
	s, path, at := storetest.New(t), filepath.Join(t.TempDir(), "chats.jsonl"), time.Now().Add(-time.Hour)
	require.NoError(t, os.WriteFile(path, []byte(`{"messages":[{"role":"user","content":"Hello"}]}`), 0o600))
	require.NoError(t, os.Chtimes(path, at, at))
	var journal uint64
	for i := range 3 {
		files, err := importer.FilesOf(ctx, s, "m", path)
		require.NoError(t, err)
		files.ReadAll()
		report, err := importer.Import(ctx, s, archive.Path(path), importer.Options{Files: files})
		require.NoError(t, err)
		require.EqualValues(t, 1, report.Conversations)
		stats, err := s.Stats(ctx)
		require.NoError(t, err)
		if i > 0 {
			require.Equal(t, journal, stats.UnpackedBytes)
		}
		journal = stats.UnpackedBytes
	}
}

// A session whose messages are in other files is read again though its own file has not changed. A subagent is read with its session,
// also one that no message names, and sessions that are each other's are not lost.
func TestFilesBesideAreReadAgain(t *testing.T) {
	ctx := context.Background()
	s, dir, at := storetest.New(t), t.TempDir(), time.Now().Add(-time.Hour)
	write := func(name, content string) {
		path := filepath.Join(dir, "storage", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	said := func(session, id, text string) {
		write("message/"+session+"/"+id+".json", `{"id":"`+id+`","role":"user","time":{"created":1748779200000}}`)
		write("part/"+id+"/prt_1.json", `{"id":"prt_1","type":"text","text":"`+text+`"}`)
	}
	session := func(id, parent string) {
		write("session/p/"+id+".json", `{"id":"`+id+`","projectID":"p","parentID":"`+parent+`","time":{"created":1748779200000,"updated":1748779200000}}`)
		said(id, "msg_"+id, "of "+id)
	}
	importFolder := func() importer.Report {
		t.Helper()
		files, err := importer.FilesOf(ctx, s, "m", dir)
		require.NoError(t, err)
		report, err := importer.Import(ctx, s, archive.Path(dir), importer.Options{Files: files})
		require.NoError(t, err)
		return report
	}
	session("ses_2", "")
	session("ses_1", "ses_2") // read first
	session("ses_3", "ses_1")
	session("ses_8", "ses_9")
	session("ses_9", "ses_8")
	require.EqualValues(t, 3, importFolder().NewConversations)
	said("ses_2", "msg_z1", "more")
	said("ses_3", "msg_z2", "more of a subagent")
	report := importFolder()
	require.Zero(t, report.Unchanged)
	require.EqualValues(t, 2, report.NewMessages)
	for _, id := range []string{"ses_1", "ses_3"} {
		_, err := s.FindThread(ctx, id)
		require.ErrorIs(t, err, lineage.ErrNotFound)
	}
	requireSound(t, s)
}
