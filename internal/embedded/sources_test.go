package embedded

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A telling is a thread whose messages have source ids.
type telling struct {
	t      *testing.T
	engine *Engine
	thread *structure.Thread
	run    structure.RunID
	last   uint64
}

func newTelling(t *testing.T, e *Engine, name string) *telling {
	thread := &structure.Thread{ID: structure.DeriveID[structure.ThreadID](name), Title: name, Incarnation: 1, CreatedAt: time.Now()}
	s := &telling{t: t, engine: e, thread: thread, run: structure.DeriveID[structure.RunID](name)}
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{thread, &structure.Run{ID: s.run, Home: thread.Home()}}}, backend.Options{})
	require.NoError(t, err)
	return s
}

// say adds a message of two usages, and returns the second with the source id.
func (s *telling) say(id string, lookup uint64) (backend.Found, error) {
	body := fmt.Appendf(nil, "%s, version %d of %s", id, lookup, s.thread.Title)
	first := &structure.Block{Block: content.Block{ID: content.Sum(body), Type: content.TypeText, Size: int64(len(body))}, Body: body}
	at := structure.SpanRef{Run: s.run, Seq: s.last + 1}
	usage := func(id string, lookup uint64) structure.Usage {
		return structure.Usage{Kind: structure.MessageUsage, Role: "user", Content: first.ID, SourceID: id, Lookup: lookup}
	}
	_, err := s.engine.Apply(background, &structure.Commit{Records: []structure.Record{
		first, &structure.Span{Ref: at, Usages: []structure.Usage{usage("outer "+id, lookup), usage(id, lookup)}},
		&structure.Context{ID: structure.NewID[structure.ContextID](), Thread: s.thread.ID, Base: at, Tip: at},
	}}, backend.Options{})
	if err == nil {
		s.last++
	}
	return backend.Found{Home: s.thread.Home(), Lookup: lookup, Span: at}, err
}

func (s *telling) mustSay(id string, lookup uint64) backend.Found {
	found, err := s.say(id, lookup)
	require.NoError(s.t, err)
	return found
}

func foundBy(t *testing.T, e *Engine, id string, in structure.ThreadID, after backend.Found) (all []backend.Found) {
	for f, err := range e.Find(background, id, in, after) {
		require.NoError(t, err)
		all = append(all, f)
	}
	return all
}

// values returns the values of all entries of source ids.
func values(t *testing.T, e *Engine) (sizes []int) {
	s := e.index.Snapshot()
	defer s.Close()
	for entry, err := range s.Scan([]byte{keys.TableSpanBySource}, []byte{keys.TableSpanBySource + 1}) {
		require.NoError(t, err)
		sizes = append(sizes, len(entry.Value))
	}
	return sizes
}

// Sealed entries of source ids keep the start of a hash. What has the same start is not mistaken for them: it is neither
// found nor refused. Versions, threads with the same ids, and pages are as before, in fast and dense packs, in an index
// that is compacted twice, and after a collection.
//
//test:norace
func TestSealedSourceIDs(t *testing.T) {
	for _, dense := range []bool{false, true} {
		t.Run(fmt.Sprint("dense ", dense), func(t *testing.T) {
			e := reopen(t, t.TempDir(), Options{Durability: backend.Normal, NoPacking: true, SegmentSize: 4 << 10})
			one, two := newTelling(t, e, "one"), newTelling(t, e, "two")
			var want, others, added []backend.Found
			for n := range 20 {
				one.mustSay(fmt.Sprint("filler ", n), 1)
				two.mustSay(fmt.Sprint("filler ", n), 1)
			}
			for lookup := range uint64(300) {
				if lookup < 3 || lookup > 238 {
					want = append(want, one.mustSay("x", lookup+1))
				}
			}
			slices.Reverse(want)
			others = append(others, two.mustSay("x", 1))
			check := func() {
				t.Helper()
				require.Equal(t, want, foundBy(t, e, "x", one.thread.ID, backend.Found{}))
				require.Equal(t, others, foundBy(t, e, "x", two.thread.ID, backend.Found{}))
				all := foundBy(t, e, "x", structure.ThreadID{}, backend.Found{})
				require.ElementsMatch(t, append(slices.Clone(want), others...), all)
				for i, f := range all {
					require.Equal(t, len(all)-1-i, len(foundBy(t, e, "x", structure.ThreadID{}, f)), i)
				}
				require.Equal(t, want[5:], foundBy(t, e, "x", one.thread.ID, want[4]))
				require.Len(t, foundBy(t, e, "outer x", one.thread.ID, backend.Found{}), len(want))
				require.Equal(t, added, foundBy(t, e, "y", one.thread.ID, backend.Found{}))
				require.Equal(t, added, foundBy(t, e, "y", structure.ThreadID{}, backend.Found{}))
				_, err := one.say("x", 2)
				require.ErrorIs(t, err, backend.ErrExists)
				_, err = two.say("x", 1)
				require.ErrorIs(t, err, backend.ErrExists)
			}
			pack := func() {
				t.Helper()
				_, err := e.Pack(background, backend.PackOptions{All: true, Dense: dense})
				require.NoError(t, err)
				require.NoError(t, e.compactIndex(background)) // a small dense store keeps no index
				sizes := values(t, e)
				require.NotEmpty(t, sizes)
				require.Zero(t, slices.Max(sizes))
				require.Empty(t, findings(t, e, true))
			}
			check()
			require.Equal(t, keys.HashPrefix-keys.LookupsInSize+1, slices.Min(values(t, e)))
			pack()
			check()

			collide := func(value []byte) {
				for _, s := range []*telling{one, two} {
					for n := range 8 {
						l := judge.Lookup{Home: s.thread.Home(), SourceID: string("xy"[n%2]), Number: uint64(n/2 + 1)}
						k, _ := keys.AppendLookup(nil, nil, l, structure.SpanRef{Run: one.run, Seq: 3})
						e.index.Apply(e.index.State(), []index.Entry{{Key: k, Value: value}})
					}
				}
				require.NoError(t, e.compactIndex(background))
			}
			collide(keys.Present)
			check()
			require.NotEmpty(t, findings(t, e, true), "the journal does not account for them")
			added = append(added, one.mustSay("y", 1))
			check()
			collide(nil)
			pack()
			check()

			_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindThread, Thread: one.thread.ID}}}, backend.Options{})
			require.NoError(t, err)
			require.Equal(t, others, foundBy(t, e, "x", structure.ThreadID{}, backend.Found{}))
			_, err = e.Collect(background, backend.CollectOptions{KeepReflog: -1, KeepUnused: -1})
			require.NoError(t, err)
			require.Equal(t, others, foundBy(t, e, "x", structure.ThreadID{}, backend.Found{}))
			require.Empty(t, foundBy(t, e, "x", one.thread.ID, backend.Found{}))
			require.Empty(t, findings(t, e, true))
		})
	}
}
