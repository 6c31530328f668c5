package search_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
	"github.com/lineage-store/lineage/structure"
)

// counter embeds texts as how often they have each word of the vocabulary and "sum".
type counter struct {
	embedded []string
	// before, when not nil, is called before each batch.
	before func(ctx context.Context, texts []string) error
}

func (c *counter) embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	if c.before != nil {
		if err := c.before(ctx, texts); err != nil {
			return nil, err
		}
	}
	c.embedded = append(c.embedded, texts...)
	for _, text := range texts {
		vectors = append(vectors, counts(text))
	}
	return vectors, ctx.Err()
}

func counts(text string) []float32 {
	v := make([]float32, 4)
	for _, word := range strings.Fields(text) {
		if i := slices.Index([]string{"ant", "bee", "cat", "sum"}, word); i >= 0 {
			v[i]++
		}
	}
	return v
}

func (c *counter) options() search.Options {
	return search.Options{Embedder: search.Embedder{Model: "counter", Embed: c.embed}}
}

// openNearest opens an index with a counter, beside a store in the same directory.
func openNearest(t testing.TB) (c *counter, store *lineage.Store, x *search.Index, dir string) {
	dir = t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	c = &counter{}
	x, err = search.Open(bg, store, dir, c.options())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, x.Close())
		require.NoError(t, store.Close())
	})
	return c, store, x, dir
}

func newMain(t testing.TB, store *lineage.Store, items ...lineage.Item) (*lineage.Thread, *lineage.Context) {
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, items...)
	require.NoError(t, err)
	return thread, main
}

func nearest(t testing.TB, x *search.Index, vector ...float32) (texts []string) {
	hits, err := x.Search(bg, search.Query{Vector: vector})
	require.NoError(t, err)
	for _, h := range hits {
		texts = append(texts, h.Text)
	}
	return texts
}

// compareNearest compares the nearest texts in a scope with those of all texts that are seen there.
func compareNearest(t require.TestingT, x *search.Index, axis float32, q search.Query, seen map[string]string) {
	q.Text, q.Vector, q.Limit = "", []float32{1, axis, -0.5, 0.25}, 10_000
	want, ranks := []string{}, []float64{}
	for id, text := range seen {
		cosine, _ := vector.Cosine(counts(text), q.Vector)
		want, ranks = append(want, fmt.Sprintf("%s %s %.6f", id, text, cosine)), append(ranks, cosine)
	}
	got := []string{}
	hits, err := x.Search(bg, q)
	require.NoError(t, err)
	for i, h := range hits {
		id := h.Summary.String()
		if h.Entry != nil {
			id = h.Entry.Span.String()
		}
		got = append(got, fmt.Sprintf("%s %s %.6f", id, h.Text, h.Rank))
		require.True(t, i == 0 || hits[i-1].Rank >= h.Rank)
	}
	require.ElementsMatch(t, want, got, "%+v", q)
	slices.Sort(ranks)
	slices.Reverse(ranks)
	q.Limit = 2
	hits, err = x.Search(bg, q)
	require.NoError(t, err)
	require.Len(t, hits, min(2, len(ranks)))
	for i, h := range hits {
		require.InDelta(t, ranks[i], h.Rank, 1e-9)
	}
}

// Nearest hits are messages of every kind and summaries, in the same scopes as those of words.
//
// feature: lineage/nearest
func TestNearest(t *testing.T) {
	c, store, x, _ := openNearest(t)
	thread, main := newMain(t, store, lineage.User("ant ant bee"), lineage.Assistant("bee cat"), lineage.User("nothing of the kind"),
		searchtest.Item(structure.DocumentUsage, "cat.md", content.TypeMarkdown, "ant cat cat"),
		searchtest.Item(structure.MessageUsage, "", content.TypeJSON, `{"role":"user","parts":[{"type":"text","text":"bee bee bee cat"},{"type":"text","text":"ant"}]}`))
	summed, err := main.Summarize(bg, searchtest.Saying("sum ant"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	alone, err := store.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	_, err = alone.Extend(bg, lineage.User("cat"))
	require.NoError(t, err)

	require.Equal(t, []string{"ant", "ant ant bee", "sum ant", "ant cat cat", "cat", "bee cat"}, nearest(t, x, 1, 0, 0, 0), "a message with two texts is one hit")
	require.Equal(t, []string{"bee bee bee cat", "bee cat"}, nearest(t, x, 0, 1, 0, 0)[:2])
	hits, err := x.Search(bg, search.Query{Vector: []float32{0, 0, 0, 2}, Limit: 1, User: "ada"})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Equal(t, summed.ID, hits[0].Summary)
	require.InDelta(t, math.Sqrt2/2, hits[0].Rank, 1e-12)
	require.Equal(t, []lineage.ThreadID{thread.ID()}, hits[0].Threads)
	require.Equal(t, "sum ant", hits[0].Snippet)
	hits, err = x.Search(bg, search.Query{Vector: []float32{0, 0, 1, 0}, Roles: []string{"assistant"}})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Equal(t, "bee cat", hits[0].Text)
	hits, err = x.Search(bg, search.Query{Vector: []float32{0, 0, 1, 0}, User: "bob"})
	require.NoError(t, err)
	require.Empty(t, hits)
	require.Equal(t, "cat", nearest(t, x, 0, 0, 1, 0)[0])
	require.NotContains(t, c.embedded, "cat.md", "names are not embedded")

	require.NoError(t, main.DeleteSummary(bg, summed.ID))
	require.NoError(t, store.Erase(bg, content.Sum([]byte("ant ant bee"))))
	require.NoError(t, alone.Delete(bg))
	require.Equal(t, []string{"ant", "ant cat cat", "bee cat"}, nearest(t, x, 1, 0, 0, 0))
	_, err = main.Extend(bg, lineage.User("ant ant bee"))
	require.NoError(t, err)
	require.Equal(t, []string{"ant", "ant ant bee", "ant ant bee", "ant cat cat", "bee cat"}, nearest(t, x, 1, 0, 0, 0), "it was stored again")
}

// A text is embedded once, however often it is used, whatever fails and whoever has the index open.
// What nothing sees is not embedded.
func TestEmbedOnce(t *testing.T) {
	c, store, x, _ := openNearest(t)
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("ant %d", i))
	}
	for range 3 {
		var items []lineage.Item
		for _, text := range all {
			items = append(items, lineage.User(text))
		}
		newMain(t, store, items...)
	}
	deleted, _ := newMain(t, store, lineage.User("a deleted ant"))
	require.NoError(t, deleted.Delete(bg))

	broken := errors.New("broken")
	calls := 0
	c.before = func(ctx context.Context, texts []string) error {
		if calls++; calls == 2 {
			return broken
		}
		return nil
	}
	_, err := x.Search(bg, search.Query{Vector: []float32{1, 0, 0, 0}})
	require.ErrorIs(t, err, broken)
	require.Less(t, len(c.embedded), 300)
	require.NotEmpty(t, c.embedded)
	require.Len(t, found(t, x, "299"), 3, "words are found")
	require.Len(t, nearest(t, x, 1, 0, 0, 0), 20)
	require.ElementsMatch(t, all, c.embedded)

	_, main := newMain(t, store, lineage.User("ant 7"), lineage.User("bee"))
	require.NoError(t, x.Embed(bg))
	require.ElementsMatch(t, append(all, "bee"), c.embedded)
	_, err = main.Extend(bg, lineage.User("ant 8"))
	require.NoError(t, err)
	require.Equal(t, "bee", nearest(t, x, 0, 1, 0, 0)[0])
	require.Len(t, c.embedded, 301)

	// An error of another database is not one of the index, which is kept.
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer db.Close()
	_, broken = db.Exec(`SELECT nothing`)
	require.Error(t, broken)
	_, err = main.Extend(bg, lineage.User("cat"))
	require.NoError(t, err)
	calls = 1
	require.ErrorIs(t, x.Embed(bg), broken)
	require.NoError(t, x.Embed(bg))
	require.Len(t, c.embedded, 302)
}

// Another model embeds everything again, except what was erased.
func TestEmbedWithAnotherModel(t *testing.T) {
	c, store, x, dir := openNearest(t)
	newMain(t, store, lineage.User("ant"), lineage.User("bee"), lineage.User("cat"))
	require.Len(t, nearest(t, x, 1, 0, 0, 0), 3)
	require.NoError(t, store.Erase(bg, content.Sum([]byte("cat"))))
	require.Len(t, nearest(t, x, 1, 0, 0, 0), 2)
	require.Len(t, c.embedded, 3)
	other := &counter{}
	o := other.options()
	o.Embedder.Model = "another"
	y, err := search.Open(bg, store, dir, o)
	require.NoError(t, err)
	defer y.Close()
	require.Len(t, nearest(t, y, 1, 0, 0, 0), 2)
	require.ElementsMatch(t, []string{"ant", "bee"}, other.embedded)
	z, err := search.Open(bg, store, dir, search.Options{}) // an index without a model adds texts for that of the others
	require.NoError(t, err)
	defer z.Close()
	newMain(t, store, lineage.User("bee bee"))
	require.Len(t, found(t, z, "bee"), 2)
	require.Len(t, nearest(t, y, 1, 0, 0, 0), 3)
	require.ElementsMatch(t, []string{"ant", "bee", "bee bee"}, other.embedded)
	_, err = z.Search(bg, search.Query{Vector: []float32{1}})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	require.ErrorIs(t, z.Embed(bg), lineage.ErrInvalid)
}

// Vectors without a direction and of other lengths are not found, and are no error.
func TestUselessVectors(t *testing.T) {
	c, store, x, dir := openNearest(t)
	_, main := newMain(t, store, lineage.User("ant"))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	useless := [][]float32{nil, {0, 0, 0, 0}, {nan, 1, 1, 1}, {inf, 0, 0, 0}, {1, 2, 3}}
	y, err := search.Open(bg, store, dir, search.Options{Embedder: search.Embedder{Model: "useless", Embed: func(_ context.Context, texts []string) ([][]float32, error) {
		require.Len(t, texts, 6)
		return append(useless, []float32{1, 1, 1, 1}), nil
	}}})
	require.NoError(t, err)
	defer y.Close()
	for i := range useless {
		_, err = main.Extend(bg, lineage.User(fmt.Sprint("bee ", i)))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"bee 4"}, nearest(t, y, 1, 0, 0, 0))
	require.Len(t, nearest(t, y, 1, 0, 0), 1, "of another length")
	require.Len(t, nearest(t, x, 1, 0, 0, 0), 6, "of another model")

	for _, q := range []search.Query{
		{Vector: []float32{}}, {Vector: []float32{0, 0}}, {Vector: []float32{nan}}, {Vector: []float32{inf}}, {Vector: []float32{1}, Text: "ant"}, {Vector: []float32{1}, Limit: -1},
	} {
		_, err := x.Search(bg, q)
		require.ErrorIs(t, err, lineage.ErrInvalid, "%+v", q)
	}
	for _, bad := range []search.Embedder{{Model: "m"}, {Embed: c.embed}} {
		_, err := search.Open(bg, store, dir, search.Options{Embedder: bad})
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
	few, err := search.Open(bg, store, dir, search.Options{Embedder: search.Embedder{Model: "few", Embed: func(context.Context, []string) ([][]float32, error) { return nil, nil }}})
	require.NoError(t, err)
	defer few.Close()
	require.ErrorIs(t, few.Embed(bg), lineage.ErrInvalid)
}

// The start of a long text is embedded, in whole characters.
func TestLongTextsAreEmbedded(t *testing.T) {
	c, store, x, _ := openNearest(t)
	var items []lineage.Item
	for i := range 20 {
		items = append(items, lineage.User(strings.Repeat("ant ", i)+strings.Repeat("漢", 12_000)+"."))
	}
	c.before = func(_ context.Context, texts []string) error {
		size := 0
		for _, text := range texts {
			require.True(t, utf8.ValidString(text))
			require.Less(t, search.MaxEmbedded-utf8.UTFMax, len(text))
			require.LessOrEqual(t, len(text), search.MaxEmbedded)
			size += len(text)
		}
		require.LessOrEqual(t, size, 9*search.MaxEmbedded)
		return nil
	}
	newMain(t, store, items...)
	require.Len(t, nearest(t, x, 1, 0, 0, 0), 19)
	require.Len(t, c.embedded, 20)
}

// While texts are embedded, the store is erased from and collected, which removes the index.
func TestEmbedMeanwhile(t *testing.T) {
	c, store, x, dir := openNearest(t)
	_, main := newMain(t, store, lineage.User("ant"), lineage.User("bee"), lineage.User("ant cat"))
	calls := 0
	c.before = func(ctx context.Context, texts []string) error {
		switch calls++; calls {
		case 1:
			require.NoError(t, store.Erase(bg, content.Sum([]byte("bee"))))
			require.NoError(t, x.Update(bg))
		case 2:
			require.NotContains(t, texts, "bee")
			require.NoError(t, store.Erase(bg, content.Sum([]byte("ant cat"))))
			_, err := store.Collect(bg, lineage.CollectOptions{})
			require.NoError(t, err)
			_, err = main.Extend(bg, lineage.User("cat")) // other numbers of texts
			require.NoError(t, err)
		}
		return nil
	}
	require.Equal(t, []string{"ant cat", "ant"}, nearest(t, x, 1, 1, 1, 0))
	require.Equal(t, 2, vectorsIn(t, dir), "none of the erased text")
	_, err := main.Extend(bg, lineage.User("sum"))
	require.NoError(t, err)
	require.Equal(t, []string{"ant", "cat", "sum"}, nearest(t, x, 1, 0, 0.5, 0))
	require.Equal(t, 3, vectorsIn(t, dir))
}

// A search ends with its context, while it embeds and while it waits for another search that does.
func TestEmbedEndsWithItsContext(t *testing.T) {
	c, store, x, _ := openNearest(t)
	newMain(t, store, lineage.User("ant"))
	ctx, cancel := context.WithCancel(bg)
	c.before = func(inner context.Context, _ []string) error {
		other, cancelOther := context.WithCancel(bg)
		cancelOther()
		_, err := x.Search(other, search.Query{Vector: []float32{1}})
		require.ErrorIs(t, err, context.Canceled)
		cancel()
		<-inner.Done()
		return nil
	}
	_, err := x.Search(ctx, search.Query{Vector: []float32{1, 0, 0, 0}})
	require.ErrorIs(t, err, context.Canceled)
	c.before, c.embedded = nil, nil
	require.Equal(t, []string{"ant"}, nearest(t, x, 1, 0, 0, 0))
	require.Len(t, c.embedded, 1)
}

// After a collection no file has the embedding of an erased text.
func TestErasedEmbeddingIsGone(t *testing.T) {
	_, store, x, dir := openNearest(t)
	newMain(t, store, lineage.User("ant ant ant bee bee bee bee bee cat sum"), lineage.User("cat"))
	require.Len(t, nearest(t, x, 1, 1, 1, 1), 2)
	secret := vector.Encode(counts("ant ant ant bee bee bee bee bee cat sum"))
	require.True(t, hasBytes(t, dir, secret))
	require.NoError(t, store.Erase(bg, content.Sum([]byte("ant ant ant bee bee bee bee bee cat sum"))))
	require.Equal(t, []string{"cat"}, nearest(t, x, 1, 1, 1, 1))
	require.Equal(t, 1, vectorsIn(t, dir))
	_, err := store.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"cat"}, nearest(t, x, 1, 1, 1, 1))
	require.True(t, hasBytes(t, dir, vector.Encode(counts("cat"))))
	require.False(t, hasBytes(t, dir, secret))
}

// vectorsIn returns the number of vectors in the index of a directory.
func vectorsIn(t testing.TB, dir string) (n int) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRow(`SELECT COUNT(*) FROM vectors`).Scan(&n))
	return n
}

func hasBytes(t testing.TB, dir string, what []byte) bool {
	has := false
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		has = has || bytes.Contains(b, what)
		return err
	}))
	return has
}
