package lineage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// noise returns bytes without repetition.
func noise(n int) []byte {
	body := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(body)
	return body
}

// feature: lineage/block
func TestPut(t *testing.T) {
	for name, body := range map[string][]byte{
		"empty": {}, "small": []byte("hello"), "inline": noise(content.InlineLimit),
		"cut": noise(content.InlineLimit + 1), "large": noise(3 << 20),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			origin := content.BlockOrigin{Kind: content.OriginImport, ParentID: content.Sum([]byte("draft"))}
			b, known, err := s.Put(bg, iotest.HalfReader(bytes.NewReader(body)), lineage.BlockOptions{Type: content.TypePNG, Origin: origin})
			require.NoError(t, err)
			require.False(t, known)
			require.Equal(t, content.Sum(body), b.ID)
			require.EqualValues(t, len(body), b.Size)
			before, err := s.Stats(bg)
			require.NoError(t, err)

			again, known, err := s.Put(bg, bytes.NewReader(body), lineage.BlockOptions{Type: content.TypeText})
			require.NoError(t, err)
			require.True(t, known)
			require.Equal(t, content.TypePNG, again.Type, "the block is the one first recorded")
			require.Equal(t, origin, again.Origin)
			after, err := s.Stats(bg)
			require.NoError(t, err)
			require.Equal(t, before.UniqueBytes, after.UniqueBytes)
			require.Equal(t, before.Chunks, after.Chunks)
			require.Less(t, after.StoredBytes-before.StoredBytes, uint64(content.InlineLimit), "stored again")

			require.NoError(t, s.Close())
			s = open(t, dir)
			has, err := s.View().Has(bg, []content.ID{b.ID})
			require.NoError(t, err)
			require.True(t, has[0])
			r, err := s.Body(bg, b.ID)
			require.NoError(t, err)
			requireReads(t, r, body)
			for _, from := range []int{len(body) / 2, 0, len(body)} {
				n, err := r.Seek(int64(from), io.SeekStart)
				require.NoError(t, err)
				require.EqualValues(t, from, n)
				requireReads(t, r, body[from:])
			}
			requireSound(t, s)
		})
	}
}

// requireReads requires that the rest of a reader is exactly the body.
func requireReads(t testing.TB, r io.Reader, body []byte) {
	t.Helper()
	read, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, read))
}

// chunksOfAnother returns valid chunks that do not belong to the block.
type chunksOfAnother struct {
	backend.Engine
	id content.ID
	as *structure.Block
}

func (e *chunksOfAnother) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	if len(ids) == 1 && ids[0] == e.id {
		return []*structure.Block{e.as}, nil
	}
	return e.Engine.Blocks(ctx, ids)
}

// A body that is read whole is verified whole, also when it is read again from the start.
func TestWrongBody(t *testing.T) {
	below := newStore(t)
	put := func(size int) (content.ID, *structure.Block) {
		block, _, err := below.Put(bg, bytes.NewReader(noise(size)), lineage.BlockOptions{})
		require.NoError(t, err)
		blocks, err := below.View().Blocks(bg, []content.ID{block.ID})
		require.NoError(t, err)
		return block.ID, blocks[0]
	}
	id, _ := put(1 << 20)
	_, other := put(1<<20 + 1)
	s := lineage.New(&chunksOfAnother{Engine: write.Of(below).Engine(), id: id, as: other})
	r, err := s.Body(bg, id)
	require.NoError(t, err)
	var mismatch *content.MismatchError
	for range 2 {
		_, err = io.Copy(io.Discard, r)
		require.ErrorAs(t, err, &mismatch)
		_, err = r.Seek(0, io.SeekStart)
		require.NoError(t, err)
	}
	_, err = r.Seek(-1, io.SeekStart)
	require.Error(t, err)
	_, err = io.Copy(io.Discard, r)
	require.ErrorAs(t, err, &mismatch, "a seek that fails changes nothing")
}

// feature: lineage/large
func TestLargeMessage(t *testing.T) {
	s := newStore(t)
	body := noise(1 << 20)
	c := newContext(t, s)
	_, err := c.Extend(bg,
		lineage.Item{Kind: lineage.Asset, Filename: "noise", Reader: bytes.NewReader(body)},
		lineage.Item{Kind: lineage.Asset, Filename: "again", Body: body})
	require.NoError(t, err)
	entries, err := c.All(bg)
	require.NoError(t, err)
	for _, e := range entries {
		require.Nil(t, e.Body)
		require.False(t, e.Erased)
		require.EqualValues(t, len(body), e.Size)
		require.Equal(t, content.TypeBinary, e.Type)
		r, err := s.Body(bg, e.Content)
		require.NoError(t, err)
		requireReads(t, r, body)
	}
	stats, err := s.Stats(bg)
	require.NoError(t, err)
	require.EqualValues(t, len(body), stats.UniqueBytes)
}

// Store.Text returns an entry's text also if its body was not loaded; Entry.Excerpt then returns a
// note.
func TestText(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "", "short", strings.Repeat("x", content.InlineLimit), strings.Repeat("word ", content.InlineLimit/4), "secret")
	entries, err := c.All(bg)
	require.NoError(t, err)
	require.Len(t, entries[2].Excerpt(), content.InlineLimit)
	require.Equal(t, fmt.Sprintf("[text/plain, %d bytes]", entries[3].Size), entries[3].Excerpt())
	for _, e := range entries {
		text, err := s.Text(bg, e)
		require.NoError(t, err)
		require.Equal(t, e.Content, content.Sum([]byte(text)))
	}
	for _, e := range entries[3:] {
		require.NoError(t, s.Erase(bg, e.Content))
	}
	entries, err = c.Last(bg, 2)
	require.NoError(t, err)
	for _, e := range entries {
		require.Equal(t, "[erased]", e.Excerpt())
		_, err := s.Text(bg, e)
		require.ErrorIs(t, err, lineage.ErrErased)
		require.ErrorContains(t, err, e.Content.String())
	}
}

func TestReaderThatFails(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one")
	broken := errors.New("broken pipe")
	for name, r := range map[string]io.Reader{
		"at once": iotest.ErrReader(broken),
		"later":   io.MultiReader(bytes.NewReader(noise(1<<20)), iotest.ErrReader(broken)),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Put(bg, r, lineage.BlockOptions{})
			require.ErrorIs(t, err, broken)
			_, err = c.Extend(bg, lineage.User("two"), lineage.Item{Role: "user", Reader: iotest.ErrReader(broken)})
			require.ErrorIs(t, err, broken)
			require.Equal(t, []string{"one"}, texts(t, c))
		})
	}
}

func TestEraseAndStoreAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	c := newContext(t, s, "one", "secret", "three")
	digest, err := c.Digest(bg)
	require.NoError(t, err)
	id := content.Sum([]byte("secret"))
	require.NoError(t, s.Erase(bg, id))
	check := func() {
		t.Helper()
		entries, err := c.All(bg)
		require.NoError(t, err)
		require.True(t, entries[1].Erased)
		require.Equal(t, id, entries[1].Content)
		require.Equal(t, "user", entries[1].Role)
		require.Equal(t, []string{"one", "[erased]", "three"}, textsOf(entries))
		has, err := s.View().Has(bg, []content.ID{id})
		require.NoError(t, err)
		require.False(t, has[0])
		for _, read := range []func() error{
			func() error { _, err := s.Body(bg, id); return err },
			func() error { _, err := s.Provenance(bg, id); return err },
		} {
			require.ErrorIs(t, read(), lineage.ErrErased)
			require.ErrorContains(t, read(), id.String())
		}
		got, err := c.Digest(bg)
		require.NoError(t, err)
		require.Equal(t, digest, got, "the history is the same")
	}
	check()
	require.NoError(t, s.Close())
	s = open(t, dir)
	c, err = s.Context(bg, c.ID())
	require.NoError(t, err)
	check()
	subset, err := c.Fork(bg, lineage.ForkOptions{Sees: &lineage.Filter{}})
	require.NoError(t, err)
	require.Equal(t, []string{"one", "[erased]", "three"}, texts(t, subset))

	_, _, err = s.Put(bg, strings.NewReader("secret"), lineage.BlockOptions{})
	require.NoError(t, err)
	for _, c := range []*lineage.Context{c, subset} {
		require.Equal(t, []string{"one", "secret", "three"}, texts(t, c))
	}
	requireSound(t, s)
}

func TestItemKeepsWhatItIsGiven(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	item := lineage.Item{
		Role: "assistant", Name: "planner", Body: []byte(`{"a": 1}`), Type: content.TypeJSON, Metadata: []byte(`{"tokens" : 3}`), SourceID: "m1",
		Origin: lineage.Origin{Kind: content.OriginImport, UserID: "ada", ModelID: "large", SourceID: "https://example.com"},
	}
	_, err := c.Extend(bg, item, lineage.Item{Role: "user", Content: content.Sum(item.Body)}, lineage.Item{Role: "developer"})
	require.NoError(t, err)
	entries, err := c.All(bg)
	require.NoError(t, err)
	e := entries[0]
	require.Equal(t, []string{"assistant", "planner", content.TypeJSON, `{"tokens" : 3}`, "m1"}, []string{e.Role, e.Name, e.Type, string(e.Metadata), e.SourceID})
	require.Equal(t, item.Origin, e.Origin)
	require.Equal(t, content.TypeJSON, entries[1].Type)
	require.Equal(t, content.OriginUser, entries[1].Origin.Kind, "a reference has an origin of its own")
	require.Equal(t, "user", entries[1].Name)
	require.NotNil(t, entries[2].Body, "an empty body is a body")
	require.Equal(t, content.OriginSystem, entries[2].Origin.Kind)
}
