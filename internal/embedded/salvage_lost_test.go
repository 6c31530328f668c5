package embedded

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/salvage"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// wreckOf creates a store with the given commits.
func wreckOf(t *testing.T, commits ...[]structure.Record) *wreck {
	t.Helper()
	w := &wreck{dir: filepath.Join(t.TempDir(), "store")}
	e, err := Open(background, w.dir, Options{Durability: backend.Normal, NoPacking: true})
	require.NoError(t, err)
	for i, records := range commits {
		_, err := e.Apply(background, &structure.Commit{Time: time.UnixMilli(int64(i + 1)), Records: records}, backend.Options{})
		require.NoError(t, err, i)
	}
	require.NoError(t, e.Close())
	w.findFrames(t)
	return w
}

// without salvages the store with one of its commits, counted from 0, damaged.
func (w *wreck) without(t *testing.T, i int) (*Engine, SalvageReport) {
	t.Helper()
	f := w.frames[i]
	name := filepath.Join(w.dir, journalDir, fmt.Sprintf("%010d.seg", f.Position.Segment))
	flip(t, name, f.End-1)
	defer flip(t, name, f.End-1)
	e, report, losses := w.salvage(t)
	require.Len(t, losses, 1)
	require.EqualValues(t, 1, report.Missing)
	return e, report
}

// idOf derives ids from names.
func idOf[T ~[16]byte](name string) T { return structure.DeriveID[T]("salvage", name) }

func say(in string, at structure.SpanRef, text string) []structure.Record {
	b := structure.NewBlock("text/plain", content.BlockOrigin{}, time.UnixMilli(1), []byte(text))
	return []structure.Record{
		b, &structure.Span{Ref: at, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: b.ID}}},
		&structure.Tip{Context: idOf[structure.ContextID](in), Span: at},
	}
}

func inRun(run string, seq uint64) structure.SpanRef {
	return structure.SpanRef{Run: idOf[structure.RunID](run), Seq: seq}
}

// said returns the texts of a history.
func said(t *testing.T, e *Engine, tip structure.SpanRef) (texts []string) {
	t.Helper()
	for step, err := range e.Path(background, tip, structure.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		texts = append(texts, string(step.Blocks[0].Body))
	}
	return texts
}

// twoBranches are commits of a chat whose second branch forks after its first message.
func twoBranches() [][]structure.Record {
	thread, main, side := idOf[structure.ThreadID]("chat"), idOf[structure.ContextID]("main"), idOf[structure.ContextID]("side")
	begun := &structure.Thread{ID: thread, Title: "chat", Incarnation: 7, Active: main}
	first := *begun
	first.Active = structure.ContextID{}
	model := "big"
	forked := &structure.Context{ID: side, Thread: thread, Parent: main, Base: inRun("one", 1), Tip: inRun("one", 1), Metadata: []byte(`{"a":1}`)}
	stated := *forked
	stated.Tip, stated.Overrides.Model = inRun("two", 2), &model
	return [][]structure.Record{
		{&first, &structure.Context{ID: main, Thread: thread}, &structure.Branch{Thread: thread, Name: "main", Context: main}, begun},
		append([]structure.Record{&structure.Run{ID: idOf[structure.RunID]("one")}}, say("main", inRun("one", 1), "m1")...),
		say("main", inRun("one", 2), "m2"),
		{forked, &structure.Branch{Thread: thread, Name: "side", Context: side}},
		append([]structure.Record{&structure.Run{ID: idOf[structure.RunID]("two"), Parent: inRun("one", 1)}}, say("side", inRun("two", 1), "s1")...),
		say("side", inRun("two", 2), "s2"),
		{&structure.Reflog{Context: side, From: inRun("two", 1), To: inRun("two", 2), Reason: "test"}},
		{&stated},
		say("side", inRun("two", 3), "s3"),
	}
}

// The messages of a thread are found if the commit that created it is lost.
func TestSalvageWithoutTheThread(t *testing.T) {
	w := wreckOf(t, twoBranches()[:3]...)
	e, report := w.without(t, 0)
	require.EqualValues(t, 1, report.Names)
	var threads []*structure.Thread
	for thread, err := range e.Threads(background, structure.ThreadID{}) {
		require.NoError(t, err)
		threads = append(threads, thread)
	}
	require.Len(t, threads, 1)
	require.Contains(t, threads[0].Title, "salvaged")
	active, err := e.Context(background, threads[0].Active)
	require.NoError(t, err)
	require.Equal(t, []string{"m1", "m2"}, said(t, e, active.Tip))
	b, err := e.Branch(background, threads[0].ID, "main")
	require.NoError(t, err)
	require.Equal(t, threads[0].Active, b.Context)

	// If other commits name the thread, its contexts are in that thread.
	e, _ = wreckOf(t, twoBranches()...).without(t, 0)
	_, err = e.Thread(background, idOf[structure.ThreadID]("chat"))
	require.NoError(t, err)
}

// A context whose creating commit is lost is restored by a later statement of it, and keeps
// its records from before that.
func TestSalvageWithoutTheContext(t *testing.T) {
	e, report := wreckOf(t, twoBranches()...).without(t, 3)
	require.Zero(t, report.Records)
	require.Zero(t, report.Names)
	side, err := e.Context(background, idOf[structure.ContextID]("side"))
	require.NoError(t, err)
	require.Equal(t, idOf[structure.ThreadID]("chat"), side.Thread)
	require.Equal(t, idOf[structure.ContextID]("main"), side.Parent)
	require.Equal(t, inRun("one", 1), side.Base)
	require.Equal(t, "big", *side.Overrides.Model)
	require.JSONEq(t, `{"a":1}`, string(side.Metadata))
	require.Equal(t, []string{"m1", "s1", "s2", "s3"}, said(t, e, side.Tip))
	moves := 0
	for _, err := range e.Reflog(background, side.ID) {
		require.NoError(t, err)
		moves++
	}
	require.Equal(t, 1, moves)
}

// A run whose first commit is lost continues from the tip of its context.
func TestSalvageWithoutTheRun(t *testing.T) {
	e, report := wreckOf(t, twoBranches()...).without(t, 4)
	require.EqualValues(t, 1, report.Messages)
	side, err := e.Context(background, idOf[structure.ContextID]("side"))
	require.NoError(t, err)
	require.Equal(t, []string{"m1", salvage.Note, "s2", "s3"}, said(t, e, side.Tip))
}

// A message in no context is found if the commit that created its run is lost. The thread
// that kept it is unknown.
func TestSalvageWithoutAKeptRun(t *testing.T) {
	hung := idOf[structure.RunID]("hung")
	say := func(seq uint64, text string) []structure.Record {
		b := structure.NewBlock("text/plain", content.BlockOrigin{}, time.UnixMilli(1), []byte(text))
		return []structure.Record{b, &structure.Span{Ref: structure.SpanRef{Run: hung, Seq: seq}, Usages: []structure.Usage{
			{Kind: structure.MessageUsage, Role: "user", Content: b.ID},
		}}}
	}
	commits := twoBranches()
	for _, r := range commits[0] {
		if thread, ok := r.(*structure.Thread); ok {
			thread.Keeps = true
		}
	}
	home := structure.Home{Thread: idOf[structure.ThreadID]("chat"), Incarnation: 7}
	commits = append(commits, append([]structure.Record{&structure.Run{ID: hung, Home: home}}, say(1, "k1")...), say(2, "k2"))
	e, _ := wreckOf(t, commits...).without(t, len(commits)-2)
	_, err := e.Collect(background, backend.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	found := false
	for thread, err := range e.Threads(background, structure.ThreadID{}) {
		require.NoError(t, err)
		if c, err := e.Context(background, thread.Active); err == nil && c.Tip.Run == hung {
			found = true
			require.Equal(t, []string{salvage.Note, "k2"}, said(t, e, c.Tip))
		}
	}
	require.True(t, found)
}

// A deleted thread does not leave its names to another thread created with its id.
func TestSalvageWithoutTheDeletion(t *testing.T) {
	thread, again := idOf[structure.ThreadID]("chat"), idOf[structure.ContextID]("again")
	e, _ := wreckOf(t, append(twoBranches(),
		[]structure.Record{&structure.Deletion{Subject: structure.KindThread, Thread: thread}},
		[]structure.Record{
			&structure.Thread{ID: thread, Title: "another", Incarnation: 8},
			&structure.Context{ID: again, Thread: thread}, &structure.Branch{Thread: thread, Name: "main", Context: again},
		})...).without(t, 9)
	got, err := e.Thread(background, thread)
	require.NoError(t, err)
	require.Equal(t, "another", got.Title)
	for b, err := range e.Branches(background, thread, "", "") {
		require.NoError(t, err)
		require.Equal(t, again, b.Context)
	}
	for c, err := range e.Contexts(background, thread, structure.ContextID{}) {
		require.NoError(t, err)
		require.Equal(t, again, c.ID)
	}
}

func valueOf(owner structure.Owner, key, json string) *structure.Value {
	return &structure.Value{ValueKey: structure.ValueKey{Owner: owner, Key: key}, JSON: []byte(json)}
}

// jsonOf returns the JSON of a value and its earlier versions, latest first.
func jsonOf(t *testing.T, e *Engine, key structure.ValueKey) (all []string) {
	t.Helper()
	for v, err := range e.ValueHistory(background, key) {
		require.NoError(t, err)
		all = append(all, string(v.JSON))
	}
	return all
}

// Values are found although their owner or their content is lost.
func TestSalvageValues(t *testing.T) {
	thread, side := idOf[structure.ThreadID]("chat"), idOf[structure.ContextID]("side")
	inThread := structure.ValueKey{Owner: structure.Owner{Scope: structure.ThreadScope, Thread: thread}, Key: "k"}
	inSide := structure.ValueKey{Owner: structure.Owner{Scope: structure.ContextScope, Context: side}, Key: "k"}
	inStore := structure.ValueKey{Owner: structure.Owner{Scope: structure.StoreScope}, Key: "k"}
	ofThread := func(incarnation uint64, json string) *structure.Value {
		v := valueOf(inThread.Owner, "k", json)
		v.Incarnation = incarnation
		return v
	}
	first, second := valueOf(inSide.Owner, "k", "1"), valueOf(inSide.Owner, "k", "2")
	first.Seen, second.Seen = inRun("one", 1), inRun("two", 2)
	large := structure.NewBlock("application/json", content.BlockOrigin{}, time.UnixMilli(1), []byte(`"large"`))
	inBlock := &structure.Value{ValueKey: inStore, Content: large.ID}

	t.Run("without the thread", func(t *testing.T) {
		commits := append(twoBranches()[:1], []structure.Record{ofThread(7, "1")}, []structure.Record{ofThread(7, "2")})
		e, report := wreckOf(t, commits...).without(t, 0)
		require.Zero(t, report.Records)
		made, err := e.Thread(background, thread)
		require.NoError(t, err)
		require.EqualValues(t, 7, made.Incarnation)
		require.Equal(t, []string{"2", "1"}, jsonOf(t, e, inThread))
	})
	t.Run("of a thread that was made again", func(t *testing.T) {
		again := &structure.Thread{ID: thread, Incarnation: 8}
		commits := append(twoBranches()[:1], []structure.Record{ofThread(7, "1")},
			[]structure.Record{&structure.Deletion{Subject: structure.KindThread, Thread: thread}}, []structure.Record{again}, []structure.Record{ofThread(8, "2")})
		w := wreckOf(t, commits...)
		e, report := w.without(t, 2) // the deletion
		require.Zero(t, report.Records)
		require.Equal(t, []string{"2"}, jsonOf(t, e, inThread))
		e, report = w.without(t, 3) // the current thread
		require.Zero(t, report.Records)
		require.Equal(t, []string{"2"}, jsonOf(t, e, inThread))
		commits = append(twoBranches()[:1], []structure.Record{&structure.Deletion{Subject: structure.KindThread, Thread: thread}, again}, []structure.Record{ofThread(8, "2")})
		e, report = wreckOf(t, commits...).without(t, 1)
		require.EqualValues(t, 1, report.Records, "the thread is another one")
		require.Empty(t, jsonOf(t, e, inThread))
	})
	t.Run("without the context", func(t *testing.T) {
		commits := append(twoBranches()[:6], []structure.Record{first}, []structure.Record{second}, twoBranches()[7])
		e, report := wreckOf(t, commits...).without(t, 3)
		require.Zero(t, report.Records)
		got, err := e.Context(background, side)
		require.NoError(t, err)
		require.Equal(t, idOf[structure.ContextID]("main"), got.Parent)
		require.Equal(t, []string{"2", "1"}, jsonOf(t, e, inSide))
		v, err := e.Value(background, inSide)
		require.NoError(t, err)
		require.Equal(t, second.Seen, v.Seen)
	})
	t.Run("without the span seen", func(t *testing.T) {
		commits := append(twoBranches()[:6], []structure.Record{second})
		e, report := wreckOf(t, commits...).without(t, 5)
		require.Zero(t, report.Records)
		require.EqualValues(t, 1, report.Messages)
		v, err := e.Value(background, inSide)
		require.NoError(t, err)
		require.Equal(t, second.Seen, v.Seen)
	})
	t.Run("without the content", func(t *testing.T) {
		e, report := wreckOf(t, []structure.Record{large}, []structure.Record{inBlock}).without(t, 0)
		require.EqualValues(t, 1, report.Contents)
		v, err := e.Value(background, inStore)
		require.NoError(t, err)
		_, err = e.Blocks(background, []content.ID{v.Content})
		require.ErrorIs(t, err, backend.ErrErased)
	})
}

// A body with a lost chunk reads as erased, as do all bodies that share the chunk. Content
// around it can be read.
//
//test:norace
func TestSalvageWithoutAPieceOfABody(t *testing.T) {
	body := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{8}).Read(body)
	edited := append(bytes.Clone(body), "more"...)
	commits := twoBranches()[:2]
	seq := uint64(1)
	for _, b := range [][]byte{body, edited} {
		var pieces []structure.Record
		id, root, err := content.Cut(context.Background(), bytes.NewReader(b), func(k content.Key, chunk []byte) error {
			if pieces = append(pieces, &structure.Chunk{Key: k, Bytes: bytes.Clone(chunk)}); len(pieces) > 10 {
				commits = append(commits, pieces)
				pieces = nil
			}
			return nil
		})
		require.NoError(t, err)
		seq++
		ref := inRun("one", seq)
		commits = append(commits, append(pieces,
			&structure.Block{Block: content.Block{ID: id, Type: content.TypeBinary, Size: root.Size}, Tree: root},
			&structure.Span{Ref: ref, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: id}}},
			&structure.Tip{Context: idOf[structure.ContextID]("main"), Span: ref},
		))
	}
	commits = append(commits, say("main", inRun("one", seq+1), "after"))
	w := wreckOf(t, commits...)
	e, report := w.without(t, 3)
	require.EqualValues(t, 2, report.Contents)
	require.Zero(t, report.Messages)
	require.Equal(t, []string{"m1", "", "", "after"}, said(t, e, inRun("one", seq+1)))
}

// Files that cannot be journal files are neither waited for nor read into memory.
//
//test:norace
func TestSalvageOddFiles(t *testing.T) {
	w := wreckOf(t, twoBranches()...)
	name := filepath.Join(w.dir, journalDir, "0000000002.seg")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.NoError(t, os.Truncate(name, 1<<40))
	_, report, losses := w.salvage(t)
	require.Len(t, losses, 2)
	require.EqualValues(t, len(w.frames), report.Commits)

	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Mkdir(name, 0o700))
	_, err := Salvage(background, w.dir, filepath.Join(t.TempDir(), "to"), SalvageOptions{})
	require.ErrorIs(t, err, vfs.ErrNotRegular)
	require.NoError(t, os.Remove(name))
	_, err = Salvage(background, w.dir, filepath.Join(w.dir, journalDir, "to"), SalvageOptions{})
	require.ErrorIs(t, err, backend.ErrInvalid)
	_, err = Salvage(background, w.dir, w.dir+"-to", SalvageOptions{})
	require.NoError(t, err)
}

// Forks of deleted contexts inherit what they did, after a collection and when a commit above them is
// lost.
func TestSalvageRemnants(t *testing.T) {
	named := func(name string) structure.ContextID { return idOf[structure.ContextID](name) }
	forked := func(name, of string) *structure.Context {
		c := &structure.Context{ID: named(name), Overrides: structure.Overrides{Model: &name}}
		if of != "" {
			c.Parent = named(of)
		}
		return c
	}
	gone := func(name string) *structure.Deletion {
		return &structure.Deletion{Subject: structure.KindContext, Context: named(name)}
	}
	commits := [][]structure.Record{
		{forked("a", "")}, {forked("b", "a")}, {forked("c", "b")}, {forked("d", "c")}, {gone("b"), gone("c")}, {forked("e", "d")}, {gone("a")},
	}
	// line returns the overrides that a context inherits, and of which contexts.
	line := func(e *Engine, name string) (all []string) {
		for r, err := range backend.Ancestors(background, e, named(name)) {
			require.NoError(t, err)
			all = append(all, *r.Overrides.Model)
		}
		return all
	}
	for _, collected := range []bool{false, true} {
		t.Run(fmt.Sprint("collected ", collected), func(t *testing.T) {
			w := wreckOf(t, commits...)
			if collected {
				e, err := Open(background, w.dir, Options{})
				require.NoError(t, err)
				_, err = e.Collect(background, backend.CollectOptions{KeepReflog: -1, KeepUnused: -1})
				require.NoError(t, err)
				require.NoError(t, e.Close())
			}
			e, report, _ := w.salvage(t)
			require.Zero(t, report.Records)
			require.Equal(t, []string{"d", "c", "b", "a"}, line(e, "d"))
			require.Equal(t, []string{"e", "d", "c", "b", "a"}, line(e, "e"))
			if collected {
				return // in other files
			}
			e, _ = w.without(t, 1)
			require.Equal(t, []string{"d", "c"}, line(e, "d"))
			e, _ = w.without(t, 4)
			require.Equal(t, []string{"d", "c", "b", "a"}, line(e, "d"), "without the deletion")
		})
	}
}
