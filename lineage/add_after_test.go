//test:race

package lineage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// inAndOut runs a test on the threads of a store, outside and inside a transaction.
func inAndOut(t *testing.T, test func(t *testing.T, s *lineage.Store, with func(func(find func(id string) *lineage.Thread) error) error)) {
	t.Run("outside", func(t *testing.T) {
		s := newStore(t)
		test(t, s, func(do func(func(string) *lineage.Thread) error) error {
			return do(func(id string) *lineage.Thread {
				thread, err := s.FindThread(bg, id)
				require.NoError(t, err)
				return thread
			})
		})
	})
	t.Run("in a transaction", func(t *testing.T) {
		s := newStore(t)
		test(t, s, func(do func(func(string) *lineage.Thread) error) error {
			return s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
				return do(func(id string) *lineage.Thread {
					thread, err := tx.FindThread(bg, id)
					require.NoError(t, err)
					return thread
				})
			})
		})
	})
}

// Hung messages belong to their thread, are kept with it and deleted with it.
func TestHang(t *testing.T) {
	inAndOut(t, func(t *testing.T, s *lineage.Store, with func(func(func(string) *lineage.Thread) error) error) {
		_, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "a"})
		require.NoError(t, err)
		other, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "other", Keep: true})
		require.NoError(t, err)
		theirs, err := other.AddAfter(bg, lineage.SpanRef{}, lineage.User("theirs").WithID("m"))
		require.NoError(t, err)

		var one, two, aside, root, there, both []lineage.SpanRef
		require.NoError(t, with(func(find func(string) *lineage.Thread) (err error) {
			a := find("a")
			none, err := a.AddAfter(bg, lineage.SpanRef{})
			require.NoError(t, err)
			require.Empty(t, none)
			one, err = a.AddAfter(bg, lineage.SpanRef{}, lineage.User("one").WithID("m"))
			require.NoError(t, err)
			two, err = a.AddAfter(bg, one[0], lineage.User("two"), lineage.User("three"))
			require.NoError(t, err)
			require.Equal(t, []lineage.SpanRef{{Run: one[0].Run, Seq: 2}, {Run: one[0].Run, Seq: 3}}, two, "its run goes on")
			aside, err = a.AddAfter(bg, one[0], lineage.User("aside"))
			require.NoError(t, err)
			root, err = a.AddAfter(bg, lineage.SpanRef{}, lineage.User("root"))
			require.NoError(t, err)
			there, err = a.AddAfter(bg, theirs[0], lineage.User("behind what is theirs"))
			require.NoError(t, err)
			require.NotEqual(t, theirs[0].Run, there[0].Run)
			both, err = a.AddAfter(bg, root[0], lineage.Together(lineage.User("see"), lineage.Item{Kind: lineage.Asset, Filename: "a", Body: []byte{1}}))
			return err
		}))
		require.ErrorIs(t, with(func(find func(string) *lineage.Thread) error {
			_, err := find("a").AddAfter(bg, lineage.SpanRef{}, lineage.User("again").WithID("m"))
			return err
		}), lineage.ErrExists)
		require.ErrorIs(t, with(func(find func(string) *lineage.Thread) error {
			_, err := find("a").AddAfter(bg, lineage.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 1}, lineage.User("nowhere"))
			return err
		}), lineage.ErrNotFound)

		a, err := s.FindThread(bg, "a")
		require.NoError(t, err)
		info, err := a.Info(bg)
		require.NoError(t, err)
		require.True(t, info.Keeps)
		contexts := 0
		for c, err := range a.Contexts(bg) {
			require.NoError(t, err)
			tip, err := c.Tip(bg)
			require.NoError(t, err)
			require.Zero(t, tip, "nothing stands there")
			contexts++
		}
		require.Equal(t, 1, contexts)

		check := func() {
			texts := map[string]lineage.SpanRef{}
			for e, err := range a.Spans(bg) {
				require.NoError(t, err)
				texts[e.Excerpt()] = e.Span
			}
			require.Equal(t, map[string]lineage.SpanRef{
				"one": one[0], "two": two[0], "three": two[1], "aside": aside[0], "root": root[0],
				"behind what is theirs": there[0], "see": both[0], "\x01": both[0],
			}, texts)
			require.ElementsMatch(t, []lineage.SpanRef{two[0], aside[0]}, gathered(t, s.Follows(bg, one[0])))
			require.Empty(t, gathered(t, s.Follows(bg, two[1])))
			require.ElementsMatch(t, []lineage.SpanRef{one[0], root[0], theirs[0]}, gathered(t, s.Follows(bg, lineage.SpanRef{})))
			require.ElementsMatch(t, []lineage.SpanRef{one[0], theirs[0]}, foundAnywhere(t, s, "m"))
		}
		check()
		_, err = s.Collect(bg, lineage.CollectOptions{KeepUnused: -1})
		require.NoError(t, err)
		check()
		require.NoError(t, a.Delete(bg))
		_, err = s.Collect(bg, lineage.CollectOptions{KeepUnused: -1})
		require.NoError(t, err)
		require.Equal(t, []lineage.SpanRef{theirs[0]}, foundAnywhere(t, s, "m"))
		_, err = s.Span(bg, aside[0])
		require.ErrorIs(t, err, lineage.ErrNotFound)
		requireSound(t, s)
	})
}

// Any tree of messages can be hung and read back.
func TestHangTrees(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer s.Close()
		thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "a"})
		require.NoError(r, err)
		refs := []lineage.SpanRef{{}}
		said := map[lineage.SpanRef]string{{}: ""} // the whole history
		hang := func(a *lineage.Thread) {
			parent := rapid.SampledFrom(refs).Draw(r, "parent")
			var items []lineage.Item
			for range rapid.IntRange(1, 3).Draw(r, "items") {
				items = append(items, lineage.User(fmt.Sprint(len(refs)+len(items))))
			}
			spans, err := a.AddAfter(bg, parent, items...)
			require.NoError(r, err)
			for i, ref := range spans {
				said[ref] = said[parent] + " " + string(items[i].Body)
				refs, parent = append(refs, ref), ref
			}
		}
		for range rapid.IntRange(1, 6).Draw(r, "steps") {
			if n := rapid.IntRange(0, 4).Draw(r, "in a transaction"); n > 0 {
				require.NoError(r, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
					a, err := tx.FindThread(bg, "a")
					for range n {
						hang(a)
					}
					return err
				}))
			} else {
				hang(thread)
			}
		}
		seen := 0
		for e, err := range thread.Spans(bg) {
			require.NoError(r, err)
			seen++
			history := ""
			for h, err := range s.History(bg, e.Span, lineage.Window{}) {
				require.NoError(r, err)
				history += " " + h.Excerpt()
			}
			require.Equal(r, said[e.Span], history)
		}
		require.Equal(r, len(said)-1, seen)
	})
}

// Branches and checkpoints keep the ids that callers chose.
func TestSourceIDsOfNames(t *testing.T) {
	inAndOut(t, func(t *testing.T, s *lineage.Store, with func(func(func(string) *lineage.Thread) error) error) {
		for _, id := range []string{"a", "b"} {
			_, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: id, Keep: true})
			require.NoError(t, err)
		}
		at := time.UnixMilli(7).UTC()
		uuid := structure.NewID[lineage.ContextID]().String()
		require.NoError(t, with(func(find func(string) *lineage.Thread) error {
			a := find("a")
			spans, err := a.AddAfter(bg, lineage.SpanRef{}, lineage.User("one"), lineage.User("two"))
			require.NoError(t, err)
			for name, id := range map[string]string{"side": "an id", "other": uuid} {
				c, err := a.CreateBranch(bg, name, lineage.BranchOptions{At: spans[0], SourceID: id, CreatedAt: at})
				require.NoError(t, err)
				require.Equal(t, lineage.SourceBranch(id), c.ID())
				require.NoError(t, c.MoveTo(bg, spans[1], "forward"))
			}
			_, err = a.SetCheckpoint(bg, "here", lineage.CheckpointOptions{At: spans[0], SourceID: "k", CreatedAt: at})
			require.NoError(t, err)
			moved, err := a.SetCheckpoint(bg, "here", lineage.CheckpointOptions{At: spans[1], SourceID: "another"})
			require.Equal(t, "k", moved.SourceID)
			return err
		}))
		require.Equal(t, uuid, lineage.SourceBranch(uuid).String())
		require.ErrorIs(t, with(func(find func(string) *lineage.Thread) error {
			_, err := find("b").CreateBranch(bg, "side", lineage.BranchOptions{SourceID: "an id"})
			return err
		}), lineage.ErrExists)
		require.ErrorIs(t, with(func(find func(string) *lineage.Thread) error {
			_, err := find("a").SetCheckpoint(bg, "there", lineage.CheckpointOptions{At: gathered(t, s.Follows(bg, lineage.SpanRef{}))[0], SourceID: "k"})
			return err
		}), lineage.ErrExists)

		a, err := s.FindThread(bg, "a")
		require.NoError(t, err)
		require.NoError(t, renameBranch(a, "side", "renamed"))
		b, err := a.Branch(bg, "renamed")
		require.NoError(t, err)
		require.Equal(t, "an id", b.SourceID)
		require.Equal(t, at, b.CreatedAt)
		require.EqualValues(t, 2, b.Length)
		k, err := a.Checkpoint(bg, "here")
		require.NoError(t, err)
		require.Equal(t, "k", k.SourceID)

		require.NoError(t, a.DeleteBranch(bg, "renamed"))
		require.NoError(t, a.DeleteCheckpoint(bg, "here"))
		require.NoError(t, with(func(find func(string) *lineage.Thread) error {
			_, err := find("b").CreateBranch(bg, "side", lineage.BranchOptions{SourceID: "an id"})
			require.NoError(t, err)
			_, err = find("a").SetCheckpoint(bg, "there", lineage.CheckpointOptions{At: gathered(t, s.Follows(bg, lineage.SpanRef{}))[0], SourceID: "k"})
			return err
		}))
	})
}

// Finding a message in all threads does not read all of them, and a negative result holds until the
// commit.
//
//test:norace
func TestFindAnywhereInTransaction(t *testing.T) {
	s := newStore(t)
	for i := range 2000 {
		thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: fmt.Sprint(i), Keep: true})
		require.NoError(t, err)
		_, err = thread.AddAfter(bg, lineage.SpanRef{}, lineage.User("hello").WithID("m"))
		require.NoError(t, err)
	}
	tries := 0
	require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		tries++
		require.NotEmpty(t, foundAnywhere(t, tx.Store, "m"))
		require.Len(t, foundAnywhere(t, tx.Store, "new"), tries-1, "it was added meanwhile")
		if tries == 1 {
			thread, err := s.FindThread(bg, "1")
			require.NoError(t, err)
			_, err = thread.AddAfter(bg, lineage.SpanRef{}, lineage.User("theirs").WithID("new"))
			require.NoError(t, err)
		}
		own, err := tx.CreateThread(bg, lineage.ThreadOptions{Keep: true})
		require.NoError(t, err)
		spans, err := own.AddAfter(bg, lineage.SpanRef{}, lineage.User("own").WithID("new"))
		require.NoError(t, err)
		in := foundAnywhere(t, tx.Store, "new")
		require.Contains(t, in, spans[0])
		require.Len(t, in, tries)
		return nil
	}))
	require.Equal(t, 2, tries)
	require.Len(t, foundAnywhere(t, s, "m"), 2000)
}

// foundAnywhere returns the spans of the messages with a source id, of all threads.
func foundAnywhere(t testing.TB, s *lineage.Store, sourceID string) (spans []lineage.SpanRef) {
	t.Helper()
	for _, f := range gathered(t, s.View().Find(bg, sourceID, lineage.ThreadID{}, backend.Found{})) {
		spans = append(spans, f.Span)
	}
	return spans
}
