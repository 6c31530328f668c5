package read

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Has implements backend.Reader.
func (v *View) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	const bodies = false
	if err := v.prefetchBlocks(ctx, ids, bodies); err != nil {
		return nil, err
	}
	out := make([]bool, len(ids))
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		_, ok, err := v.Index.Get(keys.Block(id))
		if err == nil && ok {
			ok, err = v.NotErased(id)
		}
		if err != nil {
			return nil, err
		}
		out[i] = ok
	}
	return out, nil
}

// Blocks implements backend.Reader.
func (v *View) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	const bodies = true
	if err := v.prefetchBlocks(ctx, ids, bodies); err != nil {
		return nil, err
	}
	out := make([]*structure.Block, len(ids))
	r := v.Commits.NewReader()
	for i, id := range ids {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		b, err := v.block(r, id)
		if err != nil {
			return nil, err
		}
		out[i] = b
	}
	return out, nil
}

// block reads a block and checks its id.
func (v *View) block(r Reader, id content.ID) (*structure.Block, error) {
	object, p, ok, err := v.object(r, keys.Block(id))
	if err == nil && !ok {
		return nil, &backend.SubjectError{Subject: "block", ID: id.String(), Err: backend.ErrNotFound}
	}
	if ok, erasedErr := v.NotErased(id); erasedErr != nil {
		return nil, erasedErr
	} else if !ok {
		return nil, &backend.SubjectError{Subject: "block", ID: id.String(), Err: backend.ErrErased}
	}
	if err != nil {
		return nil, fmt.Errorf("block %v: %w", id, err)
	}
	b, ok := object.(*structure.Block)
	if !ok || b.ID != id {
		return nil, fmt.Errorf("block %v: %w", id, v.corrupt(p, "another block is stored there"))
	}
	return b, nil
}

// description returns the description of an erased block.
func (v *View) description(id content.ID) (*structure.Block, error) {
	object, p, ok, err := v.object(v.Commits.NewReader(), keys.Block(id))
	if err != nil {
		return nil, fmt.Errorf("block %v: %w", id, err)
	}
	if !ok {
		return structure.Described(content.Block{ID: id}), nil
	}
	b, ok := object.(*structure.Block)
	if !ok || b.ID != id {
		return nil, fmt.Errorf("block %v: %w", id, v.corrupt(p, "another block is stored there"))
	}
	return structure.Described(b.Block), nil
}

// Chunks implements backend.Reader.
func (v *View) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	if err := v.prefetchChunks(ctx, keys); err != nil {
		return nil, err
	}
	out := make([][]byte, len(keys))
	r := v.Commits.NewReader()
	for i, k := range keys {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var err error
		if out[i], err = v.chunk(r, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (v *View) chunk(r Reader, k content.Key) ([]byte, error) {
	object, p, ok, err := v.object(r, keys.Chunk(k))
	if err != nil {
		return nil, fmt.Errorf("chunk %v: %w", k, err)
	}
	if !ok {
		return nil, &backend.SubjectError{Subject: "chunk", ID: k.String(), Err: backend.ErrNotFound}
	}
	c, ok := object.(*structure.Chunk)
	if !ok || c.Key != k {
		return nil, fmt.Errorf("chunk %v: %w", k, v.corrupt(p, "another chunk is stored there"))
	}
	return c.Bytes, nil
}

// ReadObject reads the record at the place in an index value. The caller must compare the id of the record.
func ReadObject(r Reader, value []byte) (structure.Record, keys.Location, error) {
	p, err := keys.ReadLocation(value)
	if err != nil {
		return nil, p, err
	}
	object, err := r.Object(p.Frame, p.Record, p.Size)
	return object, p, err
}

// object reads the block or chunk under a key. The caller must compare the id of the record.
func (v *View) object(r Reader, key []byte) (structure.Record, keys.Location, bool, error) {
	if v.Packs != nil {
		return v.Packs.Object(r, key)
	}
	value, ok, err := v.Index.Get(key)
	if err != nil || !ok {
		return nil, keys.Location{}, false, err
	}
	object, p, err := ReadObject(r, value)
	return object, p, true, err
}

func (v *View) corrupt(p keys.Location, what string) error {
	return &backend.CorruptError{File: v.Commits.FileOf(p.Frame), Offset: p.Record, What: what}
}
