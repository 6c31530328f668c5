package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func testEmpty(t *testing.T, c Config) {
	s := newStore(t, c)
	s.check()
	require.Empty(t, list(t, s.Feed(background, from(0))))
	require.Empty(t, list(t, s.Feed(background, from(1))))
	require.Empty(t, path(t, s, structure.SpanRef{}, structure.Window{}))
	digest, err := s.Digest(background, structure.SpanRef{})
	require.NoError(t, err)
	require.True(t, digest.IsZero())
	require.NoError(t, s.Sync(background))
	s.restart()
	s.check()
}

// testRefused applies invalid commits and checks that they leave nothing behind
// and consume no commit number.
func testRefused(t *testing.T, c Config) {
	begin := func(s *store) {
		s.apply(talk()...)
		s.apply(
			set("set", at("r", 1)), checkpoint("t", "here", at("r", 2)),
			&structure.Block{
				Block: content.Block{ID: content.Sum([]byte("aliased")), Type: content.TypeText, Size: 7, CreatedAt: moment(0)},
				Body:  []byte("aliased"),
			},
			sourcedSpan(at("r", 4), "aliased", "source"),
		)
	}
	missing := at("missing", 1)
	noPlace := structure.SpanRef{Run: id[structure.RunID]("r")}
	with := func(change func(*structure.Context)) *structure.Context {
		v := view("new", "t", at("r", 1))
		change(v)
		return v
	}
	usage := func(u structure.Usage) *structure.Span {
		return &structure.Span{Ref: at("r", 5), Usages: []structure.Usage{u}}
	}
	inSet := says(at("r", 5), "one")
	inSet.Set = id[structure.SpanSetID]("missing")
	wrong := text("body")
	wrong.Body = []byte("nobody")
	size := text("body")
	size.Size = 3
	both := text("body")
	both.Tree = content.Root{Key: content.KeyOf(both.Body), Size: both.Size}
	rootless := text("body")
	rootless.Body, rootless.Tree = nil, both.Tree
	tests := []struct {
		name    string
		want    error
		records []structure.Record
	}{
		{"nothing", backend.ErrInvalid, nil},
		{"no record", backend.ErrInvalid, []structure.Record{nil}},
		{"block under another id", backend.ErrInvalid, []structure.Record{wrong}},
		{"block of another size", backend.ErrInvalid, []structure.Record{size}},
		{"block with body and tree", backend.ErrInvalid, []structure.Record{both}},
		{"block whose tree is not there", backend.ErrNotFound, []structure.Record{rootless}},
		{"chunk under another key", backend.ErrInvalid, []structure.Record{&structure.Chunk{Key: content.KeyOf(nil), Bytes: []byte("b")}}},
		{"thread without id", backend.ErrInvalid, []structure.Record{&structure.Thread{}}},
		{"thread with a missing active context", backend.ErrNotFound, []structure.Record{&structure.Thread{ID: id[structure.ThreadID]("u"), Active: id[structure.ContextID]("missing")}}},
		{"context without id", backend.ErrInvalid, []structure.Record{with(func(v *structure.Context) { v.ID = structure.ContextID{} })}},
		{"context of a missing thread", backend.ErrNotFound, []structure.Record{view("new", "missing", at("r", 1))}},
		{"context with a missing parent", backend.ErrNotFound, []structure.Record{with(func(v *structure.Context) { v.Parent = id[structure.ContextID]("missing") })}},
		{"context with a missing base", backend.ErrNotFound, []structure.Record{with(func(v *structure.Context) { v.Base = missing })}},
		{"context with a missing tip", backend.ErrNotFound, []structure.Record{with(func(v *structure.Context) { v.Tip = at("r", 9) })}},
		{"context with an invalid tip", backend.ErrInvalid, []structure.Record{with(func(v *structure.Context) { v.Tip = noPlace })}},
		{"context of a missing span set", backend.ErrNotFound, []structure.Record{with(func(v *structure.Context) { v.Set = id[structure.SpanSetID]("missing") })}},
		{"context with another base", backend.ErrExists, []structure.Record{view("c", "t", at("r", 2))}},
		{"context in another thread", backend.ErrExists, []structure.Record{thread("u"), view("c", "u", at("r", 3))}},
		{"context with another parent", backend.ErrExists, []structure.Record{with(func(v *structure.Context) {
			*v = *view("c", "t", at("r", 3))
			v.Parent = id[structure.ContextID]("c")
		})}},
		{"tip of a missing context", backend.ErrNotFound, []structure.Record{move("missing", at("r", 1))}},
		{"tip at a missing span", backend.ErrNotFound, []structure.Record{move("c", missing)}},
		{"tip beyond a run", backend.ErrNotFound, []structure.Record{move("c", at("r", 5))}},
		{"tip at an invalid position", backend.ErrInvalid, []structure.Record{move("c", noPlace)}},
		{"run without id", backend.ErrInvalid, []structure.Record{&structure.Run{}}},
		{"run with an incarnation but no thread", backend.ErrInvalid, []structure.Record{&structure.Run{ID: id[structure.RunID]("q"), Home: structure.Home{Incarnation: 1}}}},
		{"run twice", backend.ErrExists, []structure.Record{run("r", structure.SpanRef{})}},
		{"run after a missing span", backend.ErrNotFound, []structure.Record{run("q", at("r", 5))}},
		{"run after an invalid position", backend.ErrInvalid, []structure.Record{run("q", noPlace)}},
		{"span of a missing run", backend.ErrConflict, []structure.Record{says(missing, "one")}},
		{"span that exists", backend.ErrConflict, []structure.Record{says(at("r", 4), "one")}},
		{"span that leaves a gap", backend.ErrConflict, []structure.Record{says(at("r", 6), "one")}},
		{"span not first in a new run", backend.ErrConflict, []structure.Record{run("q", at("r", 1)), says(at("q", 2), "one")}},
		{"span at an invalid position", backend.ErrInvalid, []structure.Record{says(noPlace, "one")}},
		{"span without usages", backend.ErrInvalid, []structure.Record{says(at("r", 5))}},
		{"span of missing content", backend.ErrNotFound, []structure.Record{says(at("r", 5), "one", "missing")}},
		{"span in a missing set", backend.ErrNotFound, []structure.Record{inSet}},
		{"usage without a kind", backend.ErrInvalid, []structure.Record{usage(structure.Usage{Content: content.Sum([]byte("one"))})}},
		{"usage of an unknown kind", backend.ErrInvalid, []structure.Record{usage(structure.Usage{Kind: 9, Content: content.Sum([]byte("one"))})}},
		{"part without a message", backend.ErrInvalid, []structure.Record{&structure.Span{Ref: at("r", 5), Usages: []structure.Usage{
			{Kind: structure.PartUsage, Content: content.Sum([]byte("one"))},
		}}}},
		{"part of a document", backend.ErrInvalid, []structure.Record{&structure.Span{Ref: at("r", 5), Usages: []structure.Usage{
			{Kind: structure.DocumentUsage, Document: "d", Content: content.Sum([]byte("one"))}, {Kind: structure.PartUsage, Content: content.Sum([]byte("one"))},
		}}}},
		{"usage of an unknown piece", backend.ErrInvalid, []structure.Record{usage(structure.Usage{Kind: structure.PartUsage, Piece: 6, Content: content.Sum([]byte("one"))})}},
		{"too many extras", backend.ErrInvalid, []structure.Record{usage(structure.Usage{
			Kind: structure.MessageUsage, Content: content.Sum([]byte("one")), Form: content.Sum([]byte("one")), Extras: make([][]byte, structure.MostExtras+1),
		})}},
		{"missing form", backend.ErrNotFound, []structure.Record{usage(structure.Usage{Kind: structure.MessageUsage, Content: content.Sum([]byte("one")), Form: content.Sum([]byte("missing"))})}},
		{"missing metadata", backend.ErrNotFound, []structure.Record{usage(structure.Usage{Kind: structure.AssetUsage, Content: content.Sum([]byte("one")), MetadataContent: content.Sum([]byte("missing"))})}},
		{"source id that is taken", backend.ErrExists, []structure.Record{sourcedSpan(at("r", 5), "one", "source")}},
		{"source id twice in a commit", backend.ErrExists, []structure.Record{sourcedSpan(at("r", 5), "one", "b"), sourcedSpan(at("r", 6), "one", "b")}},
		{"source id that is too long", backend.ErrInvalid, []structure.Record{sourcedSpan(at("r", 5), "one", strings.Repeat("x", backend.MaxSourceID+1))}},
		{"lookup without a source id", backend.ErrInvalid, []structure.Record{sourcedSpan(at("r", 5), "one", "")}},
		{"span set without id", backend.ErrInvalid, []structure.Record{&structure.SpanSet{}}},
		{"span set twice", backend.ErrExists, []structure.Record{set("set", at("r", 1))}},
		{"span set after a missing span", backend.ErrNotFound, []structure.Record{set("other", missing)}},
		{"branch without a name", backend.ErrInvalid, []structure.Record{branch("t", "", "c")}},
		{"branch of a missing thread", backend.ErrNotFound, []structure.Record{branch("missing", "b", "c")}},
		{"branch of a missing context", backend.ErrNotFound, []structure.Record{branch("t", "b", "missing")}},
		{"branch that names another context", backend.ErrExists, []structure.Record{view("d", "t", at("r", 1)), branch("t", "main", "d")}},
		{"checkpoint without a name", backend.ErrInvalid, []structure.Record{checkpoint("t", "", at("r", 1))}},
		{"checkpoint without a span", backend.ErrInvalid, []structure.Record{checkpoint("t", "p", structure.SpanRef{})}},
		{"checkpoint of a missing thread", backend.ErrNotFound, []structure.Record{checkpoint("missing", "p", at("r", 1))}},
		{"checkpoint at a missing span", backend.ErrNotFound, []structure.Record{checkpoint("t", "p", missing)}},
		{"checkpoint under a name that is taken", backend.ErrExists, []structure.Record{&structure.Checkpoint{
			ID: id[structure.CheckpointID]("other"), Thread: id[structure.ThreadID]("t"), Name: "here", Span: at("r", 2),
		}}},
		{"branch whose source id is too long", backend.ErrInvalid, []structure.Record{sourced(branch("t", "n", "c"), strings.Repeat("x", backend.MaxSourceID+1))}},
		{"branch whose source id is taken", backend.ErrExists, []structure.Record{sourced(branch("t", "n", "c"), "x"), sourced(branch("t", "o", "c"), "x")}},
		{"checkpoint whose source id is too long", backend.ErrInvalid, []structure.Record{&structure.Checkpoint{
			ID: id[structure.CheckpointID]("n"), Thread: id[structure.ThreadID]("t"), Name: "n", SourceID: strings.Repeat("x", backend.MaxSourceID+1), Span: at("r", 2),
		}}},
		{"checkpoint whose source id is taken", backend.ErrExists, []structure.Record{
			&structure.Checkpoint{ID: id[structure.CheckpointID]("n"), Thread: id[structure.ThreadID]("t"), Name: "n", SourceID: "x", Span: at("r", 2)},
			&structure.Checkpoint{ID: id[structure.CheckpointID]("o"), Thread: id[structure.ThreadID]("t"), Name: "o", SourceID: "x", Span: at("r", 2)},
		}},
		{"summary without id", backend.ErrInvalid, []structure.Record{&structure.Summary{Context: id[structure.ContextID]("c"), Content: content.Sum([]byte("one"))}}},
		{"summary of a missing context", backend.ErrNotFound, []structure.Record{summary("s", "missing", "one", at("r", 1))}},
		{"summary with missing content", backend.ErrNotFound, []structure.Record{summary("s", "c", "missing", at("r", 1))}},
		{"summary up to a missing span", backend.ErrNotFound, []structure.Record{summary("s", "c", "one", missing)}},
		{"reflog of a missing context", backend.ErrNotFound, []structure.Record{reflog("missing", at("r", 1), at("r", 2))}},
		{"reflog from a missing span", backend.ErrNotFound, []structure.Record{reflog("c", missing, at("r", 2))}},
		{"reflog to a missing span", backend.ErrNotFound, []structure.Record{reflog("c", at("r", 2), missing)}},
		{"deletion of nothing", backend.ErrInvalid, []structure.Record{&structure.Deletion{}}},
		{"deletion of a run", backend.ErrInvalid, []structure.Record{&structure.Deletion{Subject: structure.KindRun}}},
		{"deletion of a missing thread", backend.ErrNotFound, []structure.Record{deleteThread("missing")}},
		{"deletion of a missing context", backend.ErrNotFound, []structure.Record{deleteContext("missing")}},
		{"deletion of a context that a branch names", backend.ErrConflict, []structure.Record{deleteContext("c")}},
		{"deletion of a missing branch", backend.ErrNotFound, []structure.Record{deleteName(structure.KindBranch, "t", "missing")}},
		{"deletion of a missing checkpoint", backend.ErrNotFound, []structure.Record{deleteName(structure.KindCheckpoint, "t", "missing")}},
		{"deletion of a missing summary", backend.ErrNotFound, []structure.Record{deleteSummary("c", "missing")}},
		{"deletion of missing content", backend.ErrNotFound, []structure.Record{erase("missing")}},
	}
	var cases []refusal
	for _, tt := range tests {
		commits := [][]structure.Record{tt.records}
		if len(tt.records) > 0 { // the same after records that are valid by themselves
			commits = append(commits, append([]structure.Record{
				text("new"), chunk("new"), thread("new"), run("new", at("r", 1)), says(at("new", 1), "new"),
				move("c", at("new", 1)), deleteName(structure.KindCheckpoint, "t", "here"), checkpoint("t", "here", at("r", 2)),
			}, tt.records...))
		}
		cases = append(cases, refusal{tt.name, tt.want, commits})
	}
	s := refuses(t, c, begin, cases)
	s.apply(append(told("r", 5, "five"), move("c", at("r", 5)))...)
	s.restart()
	s.check()
}

// sourced sets the source id of a branch.
func sourced(b *structure.Branch, sourceID string) *structure.Branch {
	b.SourceID = sourceID
	return b
}

// sourcedSpan returns a span with one message that has a source id.
func sourcedSpan(ref structure.SpanRef, body, sourceID string) *structure.Span {
	s := says(ref, body)
	s.Usages[0].SourceID, s.Usages[0].Lookup = sourceID, 1
	return s
}

// testRefusedTips checks that expectations are tested before anything else.
func testRefusedTips(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	expect := backend.Options{Tips: []backend.Expect{
		{Context: id[structure.ContextID]("c"), Tip: at("r", 3)},
		{Context: id[structure.ContextID]("c"), Tip: at("r", 2)},
	}}
	err := s.refuseCommit(backend.ErrConflict, s.commit(text("four"), chunk("four")), expect)
	var tip *backend.TipError
	require.ErrorAs(t, err, &tip)
	require.Equal(t, backend.TipError{Context: id[structure.ContextID]("c"), Expected: at("r", 2), Actual: at("r", 3)}, *tip)
}

func testNumbers(t *testing.T, c Config) {
	s := newStore(t, c)
	for number := uint64(1); number <= 5; number++ {
		require.Equal(t, number, s.apply(thread(fmt.Sprint(number))).Number)
		s.refuse(backend.ErrInvalid)
	}
	before := time.Now().Truncate(time.Millisecond)
	given := &structure.Commit{Number: 77, Records: []structure.Record{thread("timeless"), view("v", "timeless", structure.SpanRef{})}}
	receipt, err := s.Apply(background, given, backend.Options{Durability: backend.Normal})
	require.NoError(t, err)
	require.Equal(t, uint64(6), receipt.Number)
	for commit, err := range s.Feed(background, from(6)) {
		require.NoError(t, err)
		require.Equal(t, uint64(6), commit.Number)
		require.False(t, commit.Time.Before(before), "a commit without a time gets that of its arrival")
		require.False(t, commit.Time.After(time.Now()))
		v, err := s.Context(background, id[structure.ContextID]("v"))
		require.NoError(t, err)
		require.Equal(t, commit.Time.UnixMilli(), v.MovedAt)
	}
}

// testMemory checks that an engine keeps no reference to the memory of a commit
// and returns none to its own, except what backend.Context documents as shared.
func testMemory(t *testing.T, c Config) {
	s := newStore(t, c)
	prompt, model := "be brief", "large"
	v := view("c", "t", at("r", 1))
	v.Overrides = structure.Overrides{SystemPrompt: &prompt, Model: &model, JSON: []byte(`{"a":1}`)}
	v.Metadata = []byte(`{"b":2}`)
	span := says(at("r", 1), "body", "other")
	span.Usages[0].Metadata = []byte(`{"c":3}`)
	span.Usages[0].Origin = &content.BlockOrigin{Kind: content.OriginTool}
	span.Usages[0].By.SourceID = "tool"
	given := s.commit(thread("t"), run("r", structure.SpanRef{}), text("body"), text("other"), chunk("chunk"), span, v, summary("s", "c", "body", at("r", 1)))
	s.applyOnly(given, backend.Options{})
	want := s.model.Facts(s.seen)
	kept := fmt.Sprint(want)
	s.model = s.model.deepCopy()
	for _, r := range given.Records {
		scribble(r)
	}
	s.check()
	require.NotEqual(t, kept, fmt.Sprint(want), "the commit was not scribbled over")

	spoil := func(r backend.Reader) {
		th, err := r.Thread(background, id[structure.ThreadID]("t"))
		require.NoError(t, err)
		scribble(th)
		for view, err := range r.Contexts(background, structure.ThreadID{}, structure.ContextID{}) {
			require.NoError(t, err)
			scribble(&view.Context)
		}
		for sum, err := range r.Summaries(background, id[structure.ContextID]("c")) {
			require.NoError(t, err)
			scribble(sum)
		}
		blocks, err := r.Blocks(background, []content.ID{content.Sum([]byte("body")), content.Sum([]byte("other"))})
		require.NoError(t, err)
		_ = append(blocks[0].Body, "what may stand behind a body, as far as it reaches"...)
		require.Equal(t, "other", string(blocks[1].Body))
		scribble(blocks[0])
		chunks, err := r.Chunks(background, []content.Key{content.KeyOf([]byte("chunk"))})
		require.NoError(t, err)
		clear(chunks[0])
	}
	spoil(s)
	s.check()
	snapshot, err := s.Snapshot(background)
	require.NoError(t, err)
	spoil(snapshot)
	compareFacts(t, s.model.Facts(s.seen), readFacts(t, snapshot, s.seen))
	require.NoError(t, snapshot.Close())
	s.restart()
	s.check()
}

// scribble overwrites the bytes that a record refers to.
func scribble(r structure.Record) {
	switch r := r.(type) {
	case *structure.Block:
		clear(r.Body)
	case *structure.Chunk:
		clear(r.Bytes)
	case *structure.Thread:
		clear(r.Metadata)
	case *structure.Context:
		clear(r.Metadata)
		clear(r.Overrides.JSON)
		if r.Overrides.SystemPrompt != nil {
			*r.Overrides.SystemPrompt = "spoiled"
		}
	case *structure.Summary:
		clear(r.Embedding)
	case *structure.Span:
		for i := range r.Usages {
			clear(r.Usages[i].Metadata)
			r.Usages[i].Role = "spoiled"
			if r.Usages[i].Origin != nil {
				r.Usages[i].Origin.Kind++
			}
		}
	}
}

func testTips(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(view("empty", "t", structure.SpanRef{}))
	own, empty := id[structure.ContextID]("c"), id[structure.ContextID]("empty")
	s.applyCommit(s.commit(append(told("r", 4, "four"), move("c", at("r", 4)))...), backend.Options{Tips: []backend.Expect{
		{Context: own, Tip: at("r", 3)}, {Context: empty},
	}})
	for _, tt := range []struct {
		context  structure.ContextID
		expected structure.SpanRef
		actual   structure.SpanRef
	}{
		{own, at("r", 3), at("r", 4)},
		{own, structure.SpanRef{}, at("r", 4)},
		{own, at("missing", 1), at("r", 4)},
		{empty, at("r", 4), structure.SpanRef{}},
	} {
		err := s.refuseCommit(backend.ErrConflict, s.commit(move("c", at("r", 1))), backend.Options{Tips: []backend.Expect{{Context: tt.context, Tip: tt.expected}}})
		var tip *backend.TipError
		require.True(t, errors.As(err, &tip))
		require.Equal(t, backend.TipError{Context: tt.context, Expected: tt.expected, Actual: tt.actual}, *tip)
	}
	s.refuseCommit(backend.ErrNotFound, s.commit(move("c", at("r", 1))), backend.Options{Tips: []backend.Expect{{Context: id[structure.ContextID]("missing")}}})
}

// testThreads expects threads that match and threads that do not.
func testThreads(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	was, other := thread("t"), thread("t")
	other.Title = "another"
	expect := func(name string, was *structure.Thread) backend.Options {
		return backend.Options{Threads: []backend.ExpectThread{{ID: id[structure.ThreadID](name), Was: was}}}
	}
	s.applyCommit(s.commit(move("c", at("r", 1))), expect("t", was))
	s.applyCommit(s.commit(thread("u")), expect("u", nil))
	s.refuseCommit(backend.ErrExists, s.commit(thread("u")), expect("u", nil))
	s.refuseCommit(backend.ErrConflict, s.commit(move("c", at("r", 2))), expect("t", other))
	s.refuseCommit(nil, s.commit(move("c", at("r", 2))), expect("missing", was))
	s.applyCommit(s.commit(other), expect("t", was))
	s.refuseCommit(backend.ErrConflict, s.commit(thread("t")), expect("t", was))
}

// testThreadsEnding creates threads whose ids have the same end.
func testThreadsEnding(t *testing.T, c Config) {
	s := newStore(t, c)
	like := func(first byte) *structure.Thread {
		th := thread("t")
		th.ID[0] = first
		return th
	}
	one, two, three, other := like(1), like(2), like(3), thread("t")
	other.ID[len(other.ID)-1]++
	s.apply(two, three, other, one)
	ending := func() []structure.ThreadID {
		var ids []structure.ThreadID
		for t2, err := range s.ThreadsEnding(background, idEnd(one.ID)) {
			require.NoError(t, err)
			ids = append(ids, t2.ID)
		}
		return ids
	}
	require.Equal(t, []structure.ThreadID{one.ID, two.ID, three.ID}, ending())
	again := *two
	again.Title = "another"
	s.apply(&again)
	require.Equal(t, []structure.ThreadID{one.ID, two.ID, three.ID}, ending())
	s.apply(&structure.Deletion{Subject: structure.KindThread, Thread: two.ID, At: moment(2)})
	require.Equal(t, []structure.ThreadID{one.ID, three.ID}, ending())
	s.apply(two)
	require.Equal(t, []structure.ThreadID{one.ID, two.ID, three.ID}, ending())
}

// testExpectedContexts expects contexts that match and contexts that do not.
func testExpectedContexts(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	expect := func(name string, was *structure.Context) backend.Options {
		return backend.Options{Contexts: []backend.ExpectContext{{ID: id[structure.ContextID](name), Was: was}}}
	}
	now := func() *structure.Context {
		got, err := s.Context(background, id[structure.ContextID]("c"))
		require.NoError(t, err)
		return &got.Context
	}
	was := now()
	s.applyCommit(s.commit(move("c", at("r", 1))), expect("c", was))
	s.refuseCommit(backend.ErrConflict, s.commit(move("c", at("r", 2))), expect("c", was))
	restated := now()
	restated.Metadata = []byte(`{"new":true}`)
	was = now()
	s.applyCommit(s.commit(restated), expect("c", was))
	s.refuseCommit(backend.ErrConflict, s.commit(restated), expect("c", was))
	s.applyCommit(s.commit(restated), expect("c", now()))
	s.applyCommit(s.commit(view("new", "t", at("r", 1))), expect("new", nil))
	s.refuseCommit(backend.ErrExists, s.commit(view("new", "t", at("r", 1))), expect("new", nil))
	s.refuseCommit(nil, s.commit(move("c", at("r", 2))), expect("missing", was))
}

// testMoved checks that Moved is the last commit that moved the tip of a context,
// and that a commit that repeats the context does not count.
func testMoved(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(thread("other"))
	s.apply(move("c", at("r", 1)))
	restated := view("c", "t", at("r", 3))
	restated.Tip, restated.Metadata = at("r", 1), []byte(`{"new":true}`)
	s.apply(restated)
	v, err := s.Context(background, restated.ID)
	require.NoError(t, err)
	require.Equal(t, uint64(3), v.Moved)
	require.Equal(t, moment(3).UnixMilli(), v.MovedAt)
	restated.Tip = at("r", 2)
	s.apply(restated)
	v, err = s.Context(background, restated.ID)
	require.NoError(t, err)
	require.Equal(t, uint64(5), v.Moved)
}

func testKnown(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	receipt := s.apply(text("new"), text("one"), thread("u"))
	require.Equal(t, []content.ID{content.Sum([]byte("one"))}, receipt.Known)
	s.apply(text("twice"), text("twice"), run("q", structure.SpanRef{}), says(at("q", 1), "twice"))
	require.Len(t, list(t, s.Feed(background, from(3))), 1)
	s.apply(chunk("piece"), chunk("piece"))
	require.Equal(t, 1, s.apply(chunk("piece"), chunk("other piece")).KnownChunks)

	// The origin of the first commit stays, and the content is not stored again.
	again := text("one")
	again.Type, again.Origin.Kind = content.TypeMarkdown, content.OriginImport
	s.apply(again, says(at("r", 4), "one"))
	for one, err := range s.Path(background, at("r", 4), structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		require.Equal(t, again.Type, one.Span.Usages[0].Type)
		require.Equal(t, &again.Origin, one.Span.Usages[0].Origin)
		require.Equal(t, text("one").Origin, one.Blocks[0].Origin)
	}
	big := make([]byte, 60<<10)
	s.apply(text(string(big)))
	require.NoError(t, s.Sync(background))
	before, err := s.Stats(background)
	require.NoError(t, err)
	for range 20 {
		require.NotEmpty(t, s.apply(text(string(big)), move("c", at("r", 1)), move("c", at("r", 2))).Known)
	}
	after, err := s.Stats(background)
	require.NoError(t, err)
	require.Less(t, after.StoredBytes-after.IndexBytes, before.StoredBytes-before.IndexBytes+uint64(len(big)))

	// A commit that adds nothing gets the number of the last commit.
	head := s.model.number
	require.Equal(t, head, s.apply(text("one"), chunk("piece")).Number)
	require.Equal(t, head, s.apply(text("one")).Number)
}

// testKnownByAnother stores the same content from many goroutines.
func testKnownByAnother(t *testing.T, c Config) {
	s := newStore(t, c)
	const writers, rounds = 8, 20
	for round := range rounds {
		body := fmt.Sprint("body ", round)
		receipts := make([]backend.Receipt, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				var err error
				receipts[w], err = s.Apply(background, &structure.Commit{Records: []structure.Record{
					text(body), chunk(body), thread(fmt.Sprint(round, w)),
				}}, backend.Options{Durability: backend.Normal})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		news := 0
		for _, r := range receipts {
			if len(r.Known) == 0 {
				news++
				require.Zero(t, r.KnownChunks)
			}
		}
		require.Equal(t, 1, news)
	}
	stats, err := s.Stats(background)
	require.NoError(t, err)
	require.Equal(t, uint64(rounds), stats.Blocks)
	require.Equal(t, uint64(rounds), stats.Chunks)
	require.Equal(t, uint64(rounds*writers), stats.Threads)
}
