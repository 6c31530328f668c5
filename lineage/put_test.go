package lineage_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// noise returns bytes that do not repeat.
func noise(n int) []byte {
	body := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(body)
	return body
}

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
			has, err := s.Has(bg, b.ID)
			require.NoError(t, err)
			require.True(t, has)
			r, err := s.Body(bg, b.ID)
			require.NoError(t, err)
			requireReads(t, r, body)
			at, err := s.BodyAt(bg, b.ID)
			require.NoError(t, err)
			for _, from := range []int{len(body) / 2, 0, len(body)} {
				n, err := at.Seek(int64(from), io.SeekStart)
				require.NoError(t, err)
				require.EqualValues(t, from, n)
				requireReads(t, at, body[from:])
			}
			requireSound(t, s)
		})
	}
}

// requireReads requires that what is left to read is exactly the body.
func requireReads(t testing.TB, r io.Reader, body []byte) {
	t.Helper()
	read, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, read))
}

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

// Store.Text returns what an entry says also where its body did not come along; Entry.Text says then that it is not there.
func TestText(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "", "short", strings.Repeat("x", content.InlineLimit), strings.Repeat("word ", content.InlineLimit/4), "secret")
	entries, err := c.All(bg)
	require.NoError(t, err)
	require.Len(t, entries[2].Text(), content.InlineLimit)
	require.Equal(t, fmt.Sprintf("[text/plain, %d bytes]", entries[3].Size), entries[3].Text())
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
		require.Equal(t, "[erased]", e.Text())
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
		has, err := s.Has(bg, id)
		require.NoError(t, err)
		require.False(t, has)
		for _, read := range []func() error{
			func() error { _, err := s.Body(bg, id); return err },
			func() error { _, err := s.BodyAt(bg, id); return err },
			func() error { _, err := s.Block(bg, id); return err },
		} {
			require.ErrorIs(t, read(), lineage.ErrErased)
			require.ErrorContains(t, read(), id.String())
		}
		is, err := c.Digest(bg)
		require.NoError(t, err)
		require.Equal(t, digest, is, "the history is the same")
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
	_, err := c.Extend(bg, item, lineage.Reference("user", content.Sum(item.Body)), lineage.Item{Role: "developer"})
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
