package backendtest

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testUploads uploads the chunks of a body before the commit that names it. Engines may
// use commit numbers for that, so there is no model.
func testUploads(t *testing.T, c Config) {
	open := c.New(t)
	e, err := open(background)
	require.NoError(t, err)
	added, err := e.Upload(background, nil)
	require.NoError(t, err)
	require.Zero(t, added)

	body := bytes.Repeat([]byte("a body that is cut, "), 20_000)
	records, block := cut(t, body)
	var chunks []*structure.Chunk
	for _, r := range records {
		chunks = append(chunks, r.(*structure.Chunk))
	}
	bad := &structure.Chunk{Key: content.KeyOf([]byte("another")), Bytes: []byte("one")}
	_, err = e.Upload(background, []*structure.Chunk{chunks[0], bad})
	require.ErrorIs(t, err, backend.ErrInvalid)
	_, err = e.Chunks(background, []content.Key{chunks[0].Key})
	require.ErrorIs(t, err, backend.ErrNotFound, "an upload that is refused leaves nothing")

	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{block}}, backend.Options{})
	require.ErrorIs(t, err, backend.ErrNotFound, "the block comes before its tree")
	distinct := make(map[content.Key]bool)
	total := 0
	for i, piece := range chunks {
		given := &structure.Chunk{Key: piece.Key, Bytes: bytes.Clone(piece.Bytes)}
		added, err := e.Upload(background, []*structure.Chunk{given})
		require.NoError(t, err)
		clear(given.Bytes) // the caller may reuse its memory
		if total += added; distinct[piece.Key] {
			require.Zero(t, added, "chunk %d", i)
		}
		distinct[piece.Key] = true
	}
	require.Equal(t, len(distinct), total)
	added, err = e.Upload(background, chunks)
	require.NoError(t, err)
	require.Zero(t, added)

	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{block}}, backend.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	_, err = e.Upload(background, chunks)
	require.ErrorIs(t, err, backend.ErrClosed)

	e, err = open(background)
	require.NoError(t, err)
	defer e.Close()
	blocks, err := e.Blocks(background, []content.ID{block.ID})
	require.NoError(t, err)
	got, err := io.ReadAll(content.VerifyReader(content.OpenTree(background, blocks[0].Tree, e.Chunks), block.ID))
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
	stats, err := e.Stats(background)
	require.NoError(t, err)
	require.Equal(t, uint64(len(distinct)), stats.Chunks)

	id, root, err := backend.Cut(background, e, bytes.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, block.ID, id)
	require.Equal(t, block.Tree, root)
}
