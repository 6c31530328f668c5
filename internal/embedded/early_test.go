package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A process that dies between the transactions of a checkpoint leaves an index
// with early entries that its state does not account for. Replaying the journal
// over them has the same result as without them.
func TestReplayOverEarlyEntries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	path := filepath.Join(dir, indexFile)
	apply := func(e *Engine, records ...structure.Record) {
		t.Helper()
		_, err := e.Apply(background, &structure.Commit{Records: records}, backend.Options{})
		require.NoError(t, err)
	}
	thread := &structure.Thread{ID: structure.NewID[structure.ThreadID]()}
	kept := &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: thread.ID}
	gone := &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: thread.ID}
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.Now(), []byte("to be erased"))
	again := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.Now(), []byte("erased and said again"))
	run := &structure.Run{ID: structure.NewID[structure.RunID](), Home: thread.Home()}
	span := func(seq uint64, b *structure.Block) *structure.Span {
		return &structure.Span{Ref: structure.SpanRef{Run: run.ID, Seq: seq}, Usages: []structure.Usage{
			{Kind: structure.MessageUsage, Role: "user", Content: b.ID, SourceID: fmt.Sprint(seq), Lookup: 1, CreatedAt: time.Now()},
		}}
	}
	erase := func(b *structure.Block) structure.Record {
		return &structure.Deletion{Subject: structure.KindBlock, Content: b.ID, At: time.Now()}
	}

	e, err := Open(background, dir, Options{})
	require.NoError(t, err)
	apply(e, thread, kept, gone, again, block)
	require.NoError(t, e.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	e, err = Open(background, dir, Options{})
	require.NoError(t, err)
	apply(e, run, span(1, block), &structure.Tip{Context: kept.ID, Span: structure.SpanRef{Run: run.ID, Seq: 1}})
	apply(e, &structure.Branch{Thread: thread.ID, Name: "main", Context: kept.ID})
	apply(e, &structure.Deletion{Subject: structure.KindContext, Context: gone.ID, At: time.Now()})
	apply(e, erase(block), erase(again))
	apply(e, again, span(2, again))
	apply(e, &structure.Run{ID: structure.NewID[structure.RunID](), Parent: structure.SpanRef{Run: run.ID, Seq: 2}})
	stats, err := e.Stats(background)
	require.NoError(t, err)
	require.NoError(t, e.Close())

	var entries []index.Entry
	db, err := index.Open(path, index.Options{})
	require.NoError(t, err)
	s := db.Snapshot()
	for entry, err := range s.Scan(nil, nil) {
		require.NoError(t, err)
		if keys.Early(entry.Key) {
			entries = append(entries, entry)
		}
	}
	s.Close()
	require.NoError(t, db.Close())
	require.NotEmpty(t, entries)
	require.NoError(t, os.WriteFile(path, before, 0o600))
	require.NoError(t, os.Remove(path+".sums"))
	db, err = index.Open(path, index.Options{})
	require.NoError(t, err)
	for _, entry := range entries {
		// A changed entry is written with the state, not before.
		if _, there, err := db.Get(entry.Key); err == nil && !there {
			db.Apply(db.State(), []index.Entry{entry})
		}
	}
	require.NoError(t, db.Close())

	e = reopen(t, dir, Options{})
	got, err := e.Stats(background)
	require.NoError(t, err)
	require.Equal(t, stats.Counts(), got.Counts())
	require.Empty(t, findings(t, e, true))
	_, err = e.Context(background, gone.ID)
	require.ErrorIs(t, err, backend.ErrNotFound)
	_, err = e.Blocks(background, []content.ID{block.ID})
	require.ErrorIs(t, err, backend.ErrErased)
	_, err = e.Blocks(background, []content.ID{again.ID})
	require.NoError(t, err)
}
