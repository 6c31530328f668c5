package bundle_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

// id returns an id that is the same in every run.
func id[T ~[16]byte](name string) T { return structure.DeriveID[T]("golden", name) }

// goldenStore creates a store that is the same in every run, with records of every kind.
func goldenStore(t testing.TB) *lineage.Store {
	t.Helper()
	s, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal, Now: ticking()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	at := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	apply := func(records ...structure.Record) {
		t.Helper()
		at = at.Add(time.Minute)
		_, err := write.Of(s).Engine().Apply(bg, &structure.Commit{Time: at, Records: records}, backend.Options{})
		require.NoError(t, err)
	}
	block := func(text string, o content.BlockOrigin) *structure.Block {
		return structure.NewBlock(content.TypeText, o, at, []byte(text))
	}
	user, model := content.BlockOrigin{Kind: content.OriginUser}, content.BlockOrigin{Kind: content.OriginAssistant}
	hello, answer, other, gone := block("hello", user), block("an answer", model), block("another answer", model), block("erased", user)
	brief := block("in brief", content.BlockOrigin{Kind: content.OriginSystem})
	var chunks []structure.Record
	body := bytes.Repeat([]byte("large "), 1<<15)
	large, root, err := content.Cut(bg, bytes.NewReader(body), func(key content.Key, chunk []byte) error {
		chunks = append(chunks, &structure.Chunk{Key: key, Bytes: bytes.Clone(chunk)})
		return nil
	})
	require.NoError(t, err)
	message := func(role string, b *structure.Block, source string) structure.Usage {
		u := structure.Usage{Kind: structure.MessageUsage, Role: role, Content: b.ID, SourceID: source, By: content.Attribution{UserID: "ada"}, CreatedAt: at}
		if source != "" {
			u.Lookup = 1
		}
		return u
	}
	thread := &structure.Thread{ID: id[structure.ThreadID]("thread"), SourceID: "t", UserID: "ada", Title: "A thread", Metadata: []byte(`{"k":1}`), Incarnation: 7, CreatedAt: at, UpdatedAt: at}
	active := *thread
	main, fork := id[structure.ContextID]("main"), id[structure.ContextID]("fork")
	active.Active = main
	ofMain := structure.Owner{Scope: structure.ContextScope, Context: main}
	run, second, set := id[structure.RunID]("run"), id[structure.RunID]("second"), id[structure.SpanSetID]("set")
	apply(thread, &structure.Context{ID: main, Thread: thread.ID, CreatedAt: at}, &structure.Branch{Thread: thread.ID, Name: "main", Context: main, CreatedAt: at}, &active)
	apply(
		&structure.Run{ID: run, Home: thread.Home()}, hello, &structure.Span{Ref: structure.SpanRef{Run: run, Seq: 1}, Usages: []structure.Usage{message("user", hello, "m1")}},
		answer, &structure.Span{Ref: structure.SpanRef{Run: run, Seq: 2}, Usages: []structure.Usage{message("assistant", answer, "")}},
		gone, &structure.Span{Ref: structure.SpanRef{Run: run, Seq: 3}, Usages: []structure.Usage{message("user", gone, "")}},
		&structure.Tip{Context: main, Span: structure.SpanRef{Run: run, Seq: 3}},
	)
	apply(chunks...)
	apply(
		&structure.Block{Block: content.Block{ID: large, Type: content.TypeBinary, Size: root.Size, Origin: user, CreatedAt: at}, Tree: root},
		&structure.SpanSet{ID: set, Parent: structure.SpanRef{Run: run, Seq: 1}, Count: 2, CreatedAt: at},
		&structure.Run{ID: second, Parent: structure.SpanRef{Run: run, Seq: 1}, Home: thread.Home()}, other,
		&structure.Span{Ref: structure.SpanRef{Run: second, Seq: 1}, Set: set, Usages: []structure.Usage{
			message("assistant", other, ""),
			{Kind: structure.AssetUsage, Content: large, Filename: "f.bin", CreatedAt: at},
			{Kind: structure.DocumentUsage, Content: hello.ID, Document: "d", Revision: 2, Type: content.TypeMarkdown, Origin: &model, Metadata: []byte(`{}`), CreatedAt: at},
		}},
		&structure.Context{ID: fork, Thread: thread.ID, Parent: main, Base: structure.SpanRef{Run: run, Seq: 1}, Tip: structure.SpanRef{Run: second, Seq: 1}, Set: set, CreatedAt: at},
	)
	apply(&structure.Deletion{Subject: structure.KindBlock, Content: gone.ID, At: at})
	apply(
		&structure.Checkpoint{ID: id[structure.CheckpointID]("point"), Thread: thread.ID, Name: "here", Span: structure.SpanRef{Run: run, Seq: 2}, CreatedAt: at},
		brief, &structure.Summary{ID: id[structure.SummaryID]("summary"), Context: main, Content: brief.ID, To: structure.SpanRef{Run: run, Seq: 2}, Model: "m", Embedding: []byte{1, 2}, CreatedAt: at},
		&structure.Tip{Context: main, Span: structure.SpanRef{Run: run, Seq: 2}},
		&structure.Value{ValueKey: valueKey(ofMain, "k"), JSON: []byte("1"), Seen: structure.SpanRef{Run: run, Seq: 1}, At: at},
		&structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.StoreScope}, "k"), JSON: []byte(`{"a": 1.0}`), At: at},
		&structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.ApplicationScope, Name: "app"}, "k"), Content: brief.ID, At: at},
		&structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.UserScope, Name: "ada"}, "gone"), At: at},
		&structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.ThreadScope, Thread: thread.ID}, "k"), Incarnation: 7, JSON: []byte("2"), At: at},
		&structure.Reflog{Context: main, From: structure.SpanRef{Run: run, Seq: 3}, To: structure.SpanRef{Run: run, Seq: 2}, Reason: "rewind", At: at},
	)
	apply(&structure.Value{ValueKey: valueKey(ofMain, "k"), JSON: []byte("2"), Seen: structure.SpanRef{Run: run, Seq: 2}, At: at})
	apply(&structure.Value{ValueKey: valueKey(ofMain, "l"), JSON: []byte("3"), Seen: structure.SpanRef{Run: run, Seq: 2}, At: at})
	apply(&structure.Value{ValueKey: valueKey(ofMain, "k"), JSON: []byte("4"), Seen: structure.SpanRef{Run: run, Seq: 3}, At: at})
	return s
}

func valueKey(owner structure.Owner, key string) structure.ValueKey {
	return structure.ValueKey{Owner: owner, Key: key}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestGolden compares bundles with the golden files, and reads these.
func TestGolden(t *testing.T) {
	s := goldenStore(t)
	golden(t, "store.bundle", writeBundle(t, s, bundle.WriteOptions{}))
	inv, err := bundle.Take(bg, s)
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = inv.WriteTo(&b)
	require.NoError(t, err)
	golden(t, "store.inventory", b.Bytes())
	golden(t, "nothing-new.bundle", writeBundle(t, s, bundle.WriteOptions{Have: inv}))

	old, err := os.ReadFile(filepath.Join("testdata", "store.bundle"))
	require.NoError(t, err)
	copied := newStore(t)
	bring(t, copied, old)
	requireSame(t, s, copied)
	rest, err := os.ReadFile(filepath.Join("testdata", "nothing-new.bundle"))
	require.NoError(t, err)
	bringAgain(t, copied, rest)
}
