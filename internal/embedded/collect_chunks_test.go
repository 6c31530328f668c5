package embedded

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A body whose chunks were collected while it was being stored is refused, however
// much of its tree exists, and can be stored again.
func TestCollectionWhileABodyIsStored(t *testing.T) {
	ctx := context.Background()
	e, err := Open(ctx, t.TempDir(), Options{Durability: backend.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	body := make([]byte, 300<<10)
	for i, random := 0, rand.New(rand.NewPCG(1, 2)); i < len(body); i++ {
		body[i] = byte(random.Uint32())
	}
	var chunks []structure.Record
	id, tree, err := content.Cut(ctx, bytes.NewReader(body), func(k content.Key, b []byte) error {
		chunks = append(chunks, &structure.Chunk{Key: k, Bytes: bytes.Clone(b)})
		return nil
	})
	require.NoError(t, err)
	block := &structure.Block{Block: content.Block{ID: id, Type: "application/octet-stream", Size: tree.Size, CreatedAt: time.Now()}, Tree: tree}
	last := len(chunks) - 1
	require.Equal(t, tree.Key, chunks[last].(*structure.Chunk).Key)
	apply := func(records ...structure.Record) error {
		_, err := e.Apply(ctx, &structure.Commit{Records: records}, backend.Options{})
		return err
	}

	require.NoError(t, apply(chunks[:last]...))
	_, err = e.Collect(ctx, backend.CollectOptions{KeepUnused: -1})
	require.NoError(t, err)
	require.NoError(t, apply(chunks[last]))
	require.ErrorIs(t, apply(block), backend.ErrNotFound)

	require.NoError(t, apply(chunks...))
	require.NoError(t, apply(block))
	got, err := io.ReadAll(content.OpenTree(ctx, tree, e.Chunks))
	require.NoError(t, err)
	require.Equal(t, body, got)
}
