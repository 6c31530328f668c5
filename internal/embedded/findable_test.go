package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// densePacked returns the directory of a closed store of n messages that is packed dense and has no index.
func densePacked(t *testing.T, n int) string {
	dir := t.TempDir()
	e := openPacked(t, dir, n)
	_, err := e.Pack(background, backend.PackOptions{All: true, Dense: true})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoFileExists(t, filepath.Join(dir, indexFile))
	return dir
}

// A pack without lookup tables gets them when the store is no longer small, and what it has is found then.
func TestUnlistedPacksAreRewritten(t *testing.T) {
	e := reopen(t, densePacked(t, 30), Options{Durability: backend.Normal, NoPacking: true})
	listed := func() error {
		v := e.journal.FileSet()
		defer v.Release()
		_, err := v.Findable(0)
		return err
	}
	require.Error(t, listed())
	_, err := e.Pack(background, backend.PackOptions{})
	require.NoError(t, err)
	require.Error(t, listed(), "the store is small")

	run := structure.NewID[structure.RunID]()
	body := []byte("the same again and again")
	c := &structure.Commit{Records: []structure.Record{
		&structure.Run{ID: run},
		&structure.Block{Block: content.Block{ID: content.Sum(body), Type: content.TypeText, Size: int64(len(body))}, Body: body},
	}}
	for seq := range uint64(spareSpans) {
		c.Records = append(c.Records, &structure.Span{
			Ref: structure.SpanRef{Run: run, Seq: seq + 1}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: content.Sum(body)}},
		})
	}
	_, err = e.Apply(background, c, backend.Options{})
	require.NoError(t, err)
	_, err = e.Pack(background, backend.PackOptions{})
	require.NoError(t, err)
	require.NoError(t, listed())
	requireTalk(t, e, 30)
	require.Empty(t, findings(t, e, true))
}

// A store without an index that is open for reading only is verified, deep too, and nothing is written to it.
func TestVerifyWithoutIndex(t *testing.T) {
	dir := densePacked(t, 30)
	before, err := os.ReadDir(dir)
	require.NoError(t, err)
	e := reopen(t, dir, Options{ReadOnly: true})
	require.Empty(t, findings(t, e, true))
	requireTalk(t, e, 30)
	after, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, len(before), len(after))
}

// A small store that was packed before it became dense loses the lookup tables of its packs when it is closed, and is
// found by its index then. An index that relies on these tables, as it is there after a power failure, is rebuilt.
func TestSpareTablesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 200)
	want := feedOf(t, e)
	_, err := e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	require.Positive(t, e.packs.Load().last)
	report, err := e.Pack(background, backend.PackOptions{All: true, Dense: true})
	require.NoError(t, err)
	require.Positive(t, e.journal.Spare())
	requireTalk(t, e, 200)
	relying, err := os.ReadFile(filepath.Join(dir, indexFile))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoFileExists(t, filepath.Join(dir, indexFile))

	for range 2 {
		e = reopen(t, dir, Options{Durability: backend.Normal, NoPacking: true})
		require.Zero(t, e.journal.Spare())
		require.InDelta(t, e.journal.Size(), report.After, 100, "what pack reports")
		require.Equal(t, want, feedOf(t, e))
		requireTalk(t, e, 200)
		require.Empty(t, findings(t, e, true))
		require.NoError(t, e.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, indexFile), relying, 0o600))
	}
}

// A damaged pack keeps its lookup tables, and its parity, which restores it.
func TestDamagedPackKeepsItsTables(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 200)
	_, err := e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	_, err = e.Pack(background, backend.PackOptions{All: true, Dense: true})
	require.NoError(t, err)
	f, err := os.OpenFile(filepath.Join(dir, journalDir, filepath.Base(e.journal.Segments()[0].Name)), os.O_RDWR, 0)
	require.NoError(t, err)
	at, b := e.journal.Segments()[0].Bytes/2, make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.NoError(t, err)
	b[0] ^= 0x40
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, e.Close())
	e = reopen(t, dir, Options{Durability: backend.Normal, NoPacking: true})
	require.Positive(t, e.journal.Spare())
	requireTalk(t, e, 200)
	require.NotEmpty(t, findings(t, e, true))
}
