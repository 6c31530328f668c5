package lineage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

func revision(document string, number uint64, text string) lineage.Item {
	return lineage.Item{Kind: lineage.Document, Document: document, Revision: number, Body: []byte(text)}
}

func revisionsOf(t testing.TB, c *lineage.Context, document string) (all []*lineage.Entry) {
	t.Helper()
	revisions, err := c.Revisions(bg, document)
	require.NoError(t, err)
	for _, r := range revisions {
		e, err := c.Revision(bg, r.Document, r.Number)
		require.NoError(t, err)
		require.Equal(t, []any{r.Document, r.Number, r.Content, r.Span, r.Index}, []any{e.Document, e.Revision, e.Content, e.Span, e.Index})
		all = append(all, e)
	}
	return all
}

func numbersOf(t testing.TB, c *lineage.Context, document string) (numbers []string) {
	t.Helper()
	for _, e := range revisionsOf(t, c, document) {
		numbers = append(numbers, fmt.Sprintf("%s %d %s", e.Document, e.Revision, e.Excerpt()))
	}
	return numbers
}

// feature: lineage/document-list
// feature: lineage/document-numbers
// feature: lineage/document-derived
func TestRevisions(t *testing.T) {
	c := newContext(t, newStore(t), "q")
	_, err := c.Extend(bg, revision("plan", 0, "one"), revision("notes", 0, "n"), revision("plan", 0, "two"))
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.Together(lineage.User("look"), revision("plan", 5, "five")))
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.Item{Kind: lineage.Document, Document: "plan", Reader: strings.NewReader("six")}, revision("plan", 2, "two"))
	require.NoError(t, err)
	require.Equal(t, []string{"plan 1 one", "plan 2 two", "plan 5 five", "plan 6 six"}, numbersOf(t, c, "plan"))
	require.Equal(t, []string{"notes 1 n", "plan 1 one", "plan 2 two", "plan 5 five", "plan 6 six"}, numbersOf(t, c, ""))
	require.Empty(t, numbersOf(t, c, "none"))

	revisions := revisionsOf(t, c, "plan")
	require.True(t, revisions[0].Origin.ParentID.IsZero())
	for i := 1; i < len(revisions); i++ {
		require.Equal(t, revisions[i-1].Content, revisions[i].Origin.ParentID)
	}
	own := revision("plan", 0, "seven")
	own.Origin.ParentID = content.Sum([]byte("one"))
	_, err = c.Extend(bg, own)
	require.NoError(t, err)
	require.Equal(t, content.Sum([]byte("one")), lastEntry(t, c).Origin.ParentID, "what the caller says")

	// A number is used once; adding the same revision again is not a new one.
	before := tip(t, c)
	_, err = c.Extend(bg, lineage.User("more"), revision("plan", 5, "another five"))
	require.ErrorIs(t, err, lineage.ErrExists)
	require.ErrorContains(t, err, "plan")
	require.ErrorContains(t, err, "revision 5")
	_, err = c.Extend(bg, revision("new", 3, "a"), revision("new", 3, "b"))
	require.ErrorIs(t, err, lineage.ErrExists, "at once")
	_, err = c.ExtendFrom(bg, before, revision("plan", 7, "other"))
	require.ErrorIs(t, err, lineage.ErrExists)
	require.Equal(t, before, tip(t, c))
	_, err = c.Extend(bg, revision("plan", 5, "five"))
	require.NoError(t, err)

	// Every history has its own numbers. A fork continues those at its base.
	child := fork(t, c)
	require.NoError(t, c.MoveTo(bg, before, "back"))
	_, err = child.Extend(bg, revision("plan", 0, "eight of the child"))
	require.NoError(t, err)
	_, err = c.Extend(bg, revision("plan", 8, "eight"))
	require.NoError(t, err)
	back(t, c, 8)
	_, err = c.Extend(bg, revision("plan", 1, "from the start"))
	require.NoError(t, err)
	require.Equal(t, []string{"plan 1 from the start"}, numbersOf(t, c, "plan"))
	require.Equal(t, "plan 8 eight of the child", numbersOf(t, child, "plan")[5])
}

func TestRevisionsInTransactions(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		in, err := tx.Context(bg, c.ID())
		if err != nil {
			return err
		}
		for _, text := range []string{"one", "two"} {
			if _, err := in.Extend(bg, revision("plan", 0, text)); err != nil {
				return err
			}
		}
		_, err = in.Extend(bg, revision("plan", 2, "other"))
		require.ErrorIs(t, err, lineage.ErrExists)
		return nil
	}))
	require.Equal(t, []string{"plan 1 one", "plan 2 two"}, numbersOf(t, c, "plan"))
}

// Concurrent writers of a document get each number once.
func TestRevisionsConcurrently(t *testing.T) {
	c := newContext(t, newStore(t))
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := c.Extend(bg, revision("plan", 0, fmt.Sprint(w, " ", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	revisions := revisionsOf(t, c, "plan")
	require.Len(t, revisions, writers*each)
	for i, e := range revisions {
		require.EqualValues(t, i+1, e.Revision)
		if i > 0 {
			require.Equal(t, revisions[i-1].Content, e.Origin.ParentID)
		}
	}
}

// However revisions are added to a history, a number has one content there.
func TestRevisionNumbersOfOtherOperations(t *testing.T) {
	s := newStore(t)
	thread, c := newThread(t, s)
	_, err := c.Extend(bg, lineage.User("q"), revision("plan", 0, "one"))
	require.NoError(t, err)
	at := tip(t, c)

	_, err = thread.AddAfter(bg, at, lineage.User("x"), revision("plan", 1, "other"))
	require.ErrorIs(t, err, lineage.ErrExists)
	_, err = thread.AddAfter(bg, at, revision("plan", 2, "a"), revision("plan", 2, "b"))
	require.ErrorIs(t, err, lineage.ErrExists)
	hung, err := thread.AddAfter(bg, at, revision("plan", 1, "one"), lineage.Item{Kind: lineage.Document, Document: "plan", Reader: strings.NewReader("two")}, revision("plan", 0, "three"))
	require.NoError(t, err)
	on, err := thread.CreateBranch(bg, "hung", lineage.BranchOptions{At: hung[2]})
	require.NoError(t, err)
	require.Equal(t, []string{"plan 1 one", "plan 2 two", "plan 3 three"}, numbersOf(t, on, "plan"))
	revisions := revisionsOf(t, on, "plan")
	require.Equal(t, content.Sum([]byte("two")), revisions[2].Origin.ParentID)

	_, err = on.Edit(bg, hung[2], revision("", 1, "edited"), lineage.EditOptions{})
	require.ErrorIs(t, err, lineage.ErrExists)
	edited, err := on.Edit(bg, at, lineage.Item{Body: []byte("one edited")}, lineage.EditOptions{Replay: func(e *lineage.Entry) bool { return e.Excerpt() != "one" }})
	require.NoError(t, err)
	require.Equal(t, []string{"plan 2 one edited", "plan 3 two", "plan 4 three"}, numbersOf(t, edited, "plan"))
	edited, err = on.Edit(bg, hung[2], lineage.Item{Body: []byte("three edited")}, lineage.EditOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"plan 1 one", "plan 2 two", "plan 4 three edited"}, numbersOf(t, edited, "plan"))

	other := fork(t, c)
	_, err = c.Extend(bg, revision("plan", 0, "mine"), revision("same", 0, "s"))
	require.NoError(t, err)
	_, err = other.Extend(bg, revision("plan", 0, "yours"), revision("plan", 0, "yours too"), revision("same", 0, "s"))
	require.NoError(t, err)
	want := []string{"plan 1 one", "plan 2 mine", "plan 3 yours", "plan 4 yours too", "same 1 s"}
	for range 2 {
		merge(t, c, other)
		require.Equal(t, want, numbersOf(t, c, ""))
	}
}
