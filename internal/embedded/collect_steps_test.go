package embedded

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// stepOptions keeps reflog entries for as long as is usual, and nothing unused.
func (s *collectStore) stepOptions() backend.CollectOptions {
	return backend.CollectOptions{Now: s.author.Now(), KeepReflog: backend.DefaultKeepReflog, KeepUnused: -1}
}

// begin starts a collection whose steps the test runs one by one.
func (s *collectStore) begin() *collect.Collection {
	return s.engine.newCollection(background, s.stepOptions())
}

// keep removes from the model everything that is not in a live set.
func (s *collectStore) keep(l *live.Set) {
	s.state.Keep(backendtest.Kept{
		Span: l.Span, Set: l.SpanSet, Block: l.Block, Chunk: l.Chunk, Value: l.Value,
	})
}

// Commits between the steps of a collection may revive dead records until the barrier is
// raised.
//
//test:norace
func TestCollectStepByStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newCollectStore(rt, t.TempDir(), backendtest.Drawn{T: rt})
		defer func() { s.close() }()
		commits := func(label string) {
			for range rapid.IntRange(0, 8).Draw(rt, label) {
				s.commit()
			}
		}
		for range 10 {
			s.commit()
		}
		for range rapid.IntRange(1, 2).Draw(rt, "collections") {
			commits("before")
			c := s.begin()
			require.NoError(rt, c.Mark())
			commits("marked")
			got, err := c.Raise()
			require.NoError(rt, err)
			s.pinned = got
			s.keep(c.Live())
			commits("raised")
			require.NoError(rt, c.Prune(got))
			got.Close()
			s.check()
			s.verify()
			commits("pruned")
			s.check()
			s.verify()
			require.NoError(rt, c.Sweep())
			commits("swept")
			s.check()
			s.verify()
		}
		s.rebuildIndex()
		s.check()
		s.verify()
	})
}

// Once the barrier is raised, commits cannot refer to dead records, and records that
// replace them stay.
func TestBarrier(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), nil)
	defer s.close()
	thread, one := structure.DeriveID[structure.ThreadID]("t"), structure.DeriveID[structure.ContextID]("c")
	run, other := structure.DeriveID[structure.RunID]("run"), structure.DeriveID[structure.RunID]("other")
	set := structure.DeriveID[structure.SpanSetID]("set")
	home := structure.Home{Thread: thread}
	at := func(r structure.RunID, seq uint64) structure.SpanRef { return structure.SpanRef{Run: r, Seq: seq} }
	text := func(body string) *structure.Block {
		return structure.NewBlock(content.TypeText, content.BlockOrigin{}, s.author.Now(), []byte(body))
	}
	span := func(ref structure.SpanRef, b *structure.Block) *structure.Span {
		return &structure.Span{Ref: ref, Usages: []structure.Usage{{
			Kind: structure.MessageUsage, Role: "user", Content: b.ID, SourceID: string(b.Body), Lookup: 1,
		}}}
	}
	apply := func(records ...structure.Record) error {
		_, err := s.engine.Apply(background, &structure.Commit{Time: s.author.Now(), Records: records}, backend.Options{})
		return err
	}
	alive, dead := text("alive"), text("dead")
	chunk := &structure.Chunk{Key: content.KeyOf([]byte("chunk")), Bytes: []byte("chunk")}
	require.NoError(t, apply(
		&structure.Thread{ID: thread}, &structure.Context{ID: one, Thread: thread},
		&structure.Run{ID: run, Home: home}, alive, span(at(run, 1), alive), dead, chunk, span(at(run, 2), dead),
		&structure.Run{ID: other, Parent: at(run, 2)}, &structure.SpanSet{ID: set, Parent: at(run, 2)},
		&structure.Tip{Context: one, Span: at(run, 1)},
	))
	c := s.begin()
	require.NoError(t, c.Mark())
	got, err := c.Raise()
	require.NoError(t, err)
	tip := func(ref structure.SpanRef) *structure.Tip { return &structure.Tip{Context: one, Span: ref} }
	usesDead := span(at(structure.DeriveID[structure.RunID]("third"), 1), dead)
	for name, refused := range map[string]struct {
		err     error
		records []structure.Record
	}{
		"move there":                          {backend.ErrNotFound, []structure.Record{tip(at(run, 2))}},
		"use its content":                     {backend.ErrNotFound, []structure.Record{&structure.Run{ID: usesDead.Ref.Run}, usesDead}},
		"erase its content":                   {backend.ErrNotFound, []structure.Record{&structure.Deletion{Subject: structure.KindBlock, Content: dead.ID}}},
		"continue after it":                   {backend.ErrConflict, []structure.Record{alive, span(at(run, 3), text("x"))}},
		"replace it":                          {backend.ErrConflict, []structure.Record{alive, span(at(run, 2), text("x"))}},
		"begin in its run":                    {backend.ErrConflict, []structure.Record{text("x"), span(at(other, 1), text("x"))}},
		"begin a run behind it":               {backend.ErrNotFound, []structure.Record{&structure.Run{ID: structure.DeriveID[structure.RunID]("new"), Parent: at(run, 2)}}},
		"offer alternatives":                  {backend.ErrNotFound, []structure.Record{&structure.SpanSet{ID: structure.DeriveID[structure.SpanSetID]("new"), Parent: at(run, 2)}}},
		"fill its set":                        {backend.ErrNotFound, []structure.Record{&structure.Context{ID: structure.DeriveID[structure.ContextID]("new"), Thread: thread, Set: set}}},
		"name it":                             {backend.ErrNotFound, []structure.Record{&structure.Checkpoint{ID: structure.DeriveID[structure.CheckpointID]("k"), Thread: thread, Name: "k", Span: at(run, 2)}}},
		"build on its chunks":                 {backend.ErrNotFound, []structure.Record{&structure.Block{Block: content.Block{ID: content.Sum([]byte("tree")), Size: 5}, Tree: content.Root{Key: chunk.Key, Size: 5}}}},
		"have its id":                         {backend.ErrConflict, []structure.Record{&structure.Run{ID: other}}},
		"have the id of its set":              {backend.ErrConflict, []structure.Record{&structure.SpanSet{ID: set}}},
		"cut a run, which is not for writers": {backend.ErrInvalid, []structure.Record{&structure.Cut{Run: run}}},
	} {
		require.ErrorIs(t, apply(refused.records...), refused.err, name)
	}
	// The same bytes can be stored again, and the source id is free.
	third := usesDead.Ref.Run
	receipt, err := s.engine.Apply(background, &structure.Commit{Records: []structure.Record{
		&structure.Run{ID: third, Parent: at(run, 1), Home: home}, alive, dead, chunk, usesDead, tip(usesDead.Ref),
	}}, backend.Options{})
	require.NoError(t, err)
	require.Equal(t, []content.ID{alive.ID}, receipt.Known)
	require.Zero(t, receipt.KnownChunks)
	require.NoError(t, c.Prune(got))
	got.Close()
	require.NoError(t, apply(&structure.Run{ID: other}, &structure.SpanSet{ID: set}), "the index has no entries of the former owners of the ids")
	s.verify()
	require.NoError(t, c.Sweep())
	for range 2 {
		blocks, err := s.engine.Blocks(background, []content.ID{alive.ID, dead.ID})
		require.NoError(t, err)
		require.Equal(t, "dead", string(blocks[1].Body))
		found, err := backend.FindFirst(background, s.engine, "dead", thread)
		require.NoError(t, err)
		require.Equal(t, usesDead.Ref, found.Span)
		_, err = s.engine.Digest(background, at(run, 2))
		require.ErrorIs(t, err, backend.ErrNotFound)
		require.ErrorIs(t, apply(text("x"), span(at(run, 2), text("x"))), backend.ErrConflict)
		s.verify()
		s.rebuildIndex()
	}
}

// pend leaves a pending collection that has swept nothing.
func (s *collectStore) pend() {
	s.t.Helper()
	c := s.begin()
	require.NoError(s.t, c.Mark())
	got, err := c.Raise()
	require.NoError(s.t, err)
	defer got.Close()
	require.NoError(s.t, c.Prune(got))
	s.modelCollects(s.stepOptions())
}

// Files that may contain deleted data are removed even if a collection was killed before
// it removed them.
func TestInterruptedCollectionLeavesNoCopies(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(1, 1)))
	s.commit()
	s.pend()
	s.close()
	left := []string{searchFile, IndexBeforeRepair, journalDir + "/0000000001.seg.100" + cutSuffix, journalDir + "/" + pendingFile + collect.Unfinished}
	for _, name := range left {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
	}
	s.open()
	s.check()
	for _, name := range left {
		require.NoFileExists(t, filepath.Join(s.dir, name))
	}
	s.close()
}

// A message that arrives while a collection deletes a later one becomes the last
// message.
func TestLastMessageDuringCollect(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), nil)
	defer s.close()
	th := &structure.Thread{ID: structure.DeriveID[structure.ThreadID]("t")}
	kept := &structure.Context{ID: structure.DeriveID[structure.ContextID]("kept"), Thread: th.ID}
	gone := &structure.Context{ID: structure.DeriveID[structure.ContextID]("gone"), Thread: th.ID}
	run := &structure.Run{ID: structure.DeriveID[structure.RunID]("run"), Home: th.Home()}
	dead := &structure.Run{ID: structure.DeriveID[structure.RunID]("dead"), Home: th.Home()}
	text := structure.NewBlock(content.TypeText, content.BlockOrigin{}, s.author.Now(), []byte("text"))
	said := func(in *structure.Run, c *structure.Context, place uint64, at int64) []structure.Record {
		ref := structure.SpanRef{Run: in.ID, Seq: place}
		return []structure.Record{
			&structure.Span{Ref: ref, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: text.ID, CreatedAt: time.UnixMilli(at)}}},
			&structure.Tip{Context: c.ID, Span: ref},
		}
	}
	last := func() int64 {
		at, err := s.engine.LastMessage(background, th.Home())
		require.NoError(t, err)
		return at.UnixMilli()
	}
	s.apply(append([]structure.Record{th, kept, gone, text, run, dead}, said(run, kept, 1, 10)...)...)
	s.apply(said(dead, gone, 1, 100)...)
	s.apply(&structure.Deletion{Subject: structure.KindContext, Context: gone.ID})
	require.EqualValues(t, 100, last())
	c := s.begin()
	require.NoError(t, c.Mark())
	got, err := c.Raise()
	require.NoError(t, err)
	s.apply(said(run, kept, 2, 50)...)
	require.NoError(t, c.Prune(got))
	got.Close()
	require.EqualValues(t, 50, last())
	s.apply(said(run, kept, 3, 40)...)
	require.EqualValues(t, 50, last())
	s.apply(said(run, kept, 4, 60)...)
	require.EqualValues(t, 60, last())
	require.NoError(t, c.Sweep())
	require.EqualValues(t, 60, last())
	s.verify()
}

// A collection ends early although commits came after its barrier: dead records stay
// dead, and the new commits exist.
//
//test:norace
func TestCollectEndsAfterTheBarrier(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newCollectStore(rt, t.TempDir(), backendtest.Drawn{T: rt})
		defer func() { s.close() }()
		for range rapid.IntRange(10, 30).Draw(rt, "before") {
			s.commit()
		}
		c := s.begin()
		require.NoError(rt, c.Mark())
		got, err := c.Raise()
		require.NoError(rt, err)
		got.Close()
		s.modelCollects(s.stepOptions())
		for range rapid.IntRange(1, 20).Draw(rt, "behind") {
			s.commit()
		}
		s.verify()
		switch rapid.IntRange(0, 2).Draw(rt, "then") {
		case 0:
			s.rebuildIndex()
			s.check()
		case 1:
			s.close()
			s.open()
			s.check()
		}
		s.verify()
		s.collectRest()
		s.check()
		s.verify()
		s.rebuildIndex()
		s.check()
	})
}

// A collection begins and ends while a commit is on its way, after known content was left out of it. The commit
// stores the content again.
func TestCollectionBetweenLookupAndCommit(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), nil)
	defer s.close()
	e := s.engine
	text := structure.NewBlock(content.TypeText, content.BlockOrigin{}, s.author.Now(), []byte("text"))
	other := structure.NewBlock(content.TypeText, content.BlockOrigin{}, s.author.Now(), []byte("other"))
	said := &structure.Span{
		Ref:    structure.SpanRef{Run: structure.DeriveID[structure.RunID]("run"), Seq: 1},
		Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: text.ID}},
	}
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{text, other}}, backend.Options{})
	require.NoError(t, err)
	var left []*submission
	for _, c := range []*structure.Commit{
		{Records: []structure.Record{other}}, // without it, no record is left
		{Records: []structure.Record{text, &structure.Run{ID: said.Ref.Run}, said}},
	} {
		begun := &submission{ctx: background, durability: backend.Normal}
		require.NoError(t, begun.p.Begin(c))
		_, err := e.leaveOut(begun)
		require.NoError(t, err)
		require.NoError(t, begun.encode())
		require.Len(t, begun.p.Known, 1)
		left = append(left, begun)
	}
	removed, err := e.Collect(background, backend.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	require.EqualValues(t, 2, removed.Blocks)
	for i, begun := range left {
		if i > 0 {
			begun.seen = e.index.Number() // as if there were no commit in between either
		}
		e.write.Lock()
		e.commit(begun)
		e.write.Unlock()
		require.NoError(t, begun.err)
	}
	blocks, err := e.Blocks(background, []content.ID{text.ID, other.ID})
	require.NoError(t, err)
	require.Equal(t, "text", string(blocks[0].Body))
	require.Equal(t, "other", string(blocks[1].Body))
	s.verify()
}

// alike returns a text, and a body of one chunk whose id begins like that of the text.
func (s *collectStore) alike() (text, body *structure.Block, chunk *structure.Chunk) {
	text = structure.NewBlock(content.TypeText, content.BlockOrigin{}, s.author.Now(), []byte("text"))
	chunk = &structure.Chunk{Key: content.KeyOf([]byte("chunk")), Bytes: []byte("chunk")}
	id := content.Sum(chunk.Bytes)
	copy(id[:8], text.ID[:])
	return text, &structure.Block{Block: content.Block{ID: id, Size: 5}, Tree: content.Root{Key: chunk.Key, Size: 5}}, chunk
}

// apply applies a commit with these records.
func (s *collectStore) apply(records ...structure.Record) {
	s.t.Helper()
	_, err := s.engine.Apply(background, &structure.Commit{Time: s.author.Now(), Records: records}, backend.Options{})
	require.NoError(s.t, err)
}

// Content that is stored again behind the barrier stays, although other content whose id begins alike was stored there
// before.
func TestContentWhoseIDBeginsAlike(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), nil)
	defer s.close()
	text, body, chunk := s.alike()
	s.apply(text)
	c := s.begin()
	require.NoError(t, c.Mark())
	got, err := c.Raise()
	require.NoError(t, err)
	s.apply(chunk, body)
	s.apply(text)
	require.NoError(t, c.Prune(got))
	got.Close()
	require.NoError(t, c.Sweep())
	blocks, err := s.engine.Blocks(background, []content.ID{text.ID})
	require.NoError(t, err)
	require.Equal(t, "text", string(blocks[0].Body))
}

// A body is stored while a collection marks what is live. Its id begins like that of live content, and its only chunk
// was dead. The chunk stays.
func TestBodyWhoseIDBeginsAlike(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), nil)
	defer s.close()
	text, body, chunk := s.alike()
	one := &structure.Context{ID: structure.DeriveID[structure.ContextID]("c")}
	run := structure.DeriveID[structure.RunID]("run")
	said := func(place uint64, b *structure.Block) []structure.Record {
		ref := structure.SpanRef{Run: run, Seq: place}
		return []structure.Record{
			&structure.Span{Ref: ref, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: b.ID}}},
			&structure.Tip{Context: one.ID, Span: ref},
		}
	}
	s.apply(append([]structure.Record{one, text, chunk, &structure.Run{ID: run}}, said(1, text)...)...)
	c := s.begin()
	require.NoError(t, c.Mark())
	s.apply(append([]structure.Record{body}, said(2, body)...)...)
	got, err := c.Raise()
	require.NoError(t, err)
	require.NoError(t, c.Prune(got))
	got.Close()
	require.NoError(t, c.Sweep())
	chunks, err := s.engine.Chunks(background, []content.Key{chunk.Key})
	require.NoError(t, err)
	require.Equal(t, "chunk", string(chunks[0]))
}
