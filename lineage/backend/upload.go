package backend

import (
	"bytes"
	"context"
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// uploadBytes is the size of the parts in which a body is uploaded.
const uploadBytes = 1 << 20

// Cut uploads a body that is too large to be stored whole. It returns its id and its tree for the block of a commit.
// It needs about a megabyte of memory.
func Cut(ctx context.Context, e Engine, body io.Reader) (content.ID, content.Root, error) {
	var chunks []*structure.Chunk
	var size int
	upload := func() error {
		if len(chunks) == 0 {
			return nil
		}
		_, err := e.Upload(ctx, chunks)
		chunks, size = chunks[:0], 0
		return err
	}
	id, root, err := content.Cut(ctx, body, func(key content.Key, chunk []byte) error {
		chunks = append(chunks, &structure.Chunk{Key: key, Bytes: bytes.Clone(chunk)})
		if size += len(chunk); size < uploadBytes {
			return nil
		}
		return upload()
	})
	if err == nil {
		err = upload()
	}
	return id, root, err
}

// UploadInCommit implements Upload for engines that store chunks as a separate commit, before
// the commit that uses the chunks. Both become durable together.
func UploadInCommit(ctx context.Context, e Engine, chunks []*structure.Chunk) (added int, err error) {
	if len(chunks) == 0 {
		return 0, ctx.Err()
	}
	records := make([]structure.Record, len(chunks))
	for i, c := range chunks {
		records[i] = c
	}
	receipt, err := e.Apply(ctx, &structure.Commit{Records: records}, Options{Durability: Normal})
	if err != nil {
		return 0, err
	}
	return len(chunks) - receipt.KnownChunks, nil
}
