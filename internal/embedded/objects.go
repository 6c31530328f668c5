package embedded

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Blocks implements backend.Reader.
func (v view) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	out := make([]*structure.Block, len(ids))
	r := v.newReader()
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

// block reads a block where its record stands and checks it against its id.
func (v view) block(r *journal.Reader, id content.ID) (*structure.Block, error) {
	object, p, ok, err := v.index.object(r, keys.Block(id))
	if err == nil && !ok {
		return nil, &backend.SubjectError{Subject: "block", ID: id.String(), Err: backend.ErrNotFound}
	}
	if ok, erasedErr := v.notErased(id); erasedErr != nil {
		return nil, erasedErr
	} else if !ok {
		return nil, &backend.SubjectError{Subject: "block", ID: id.String(), Err: backend.ErrErased}
	}
	if err != nil {
		return nil, fmt.Errorf("block %v: %w", id, err)
	}
	b, ok := object.(*structure.Block)
	if !ok || b.ID != id {
		return nil, fmt.Errorf("block %v: %w", id, v.engine.corrupt(p, "another block stands there"))
	}
	return b, nil
}

// description returns what is left of a block that was erased.
func (v view) description(id content.ID) (*structure.Block, error) {
	object, p, ok, err := v.index.object(v.newReader(), keys.Block(id))
	if err != nil {
		return nil, fmt.Errorf("block %v: %w", id, err)
	}
	if !ok {
		return structure.Described(content.Block{ID: id}), nil
	}
	b, ok := object.(*structure.Block)
	if !ok || b.ID != id {
		return nil, fmt.Errorf("block %v: %w", id, v.engine.corrupt(p, "another block stands there"))
	}
	return structure.Described(b.Block), nil
}

// Chunks implements backend.Reader.
func (v view) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	out := make([][]byte, len(keys))
	r := v.newReader()
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

func (v view) chunk(r *journal.Reader, k content.Key) ([]byte, error) {
	object, p, ok, err := v.index.object(r, keys.Chunk(k))
	if err != nil {
		return nil, fmt.Errorf("chunk %v: %w", k, err)
	}
	if !ok {
		return nil, &backend.SubjectError{Subject: "chunk", ID: k.String(), Err: backend.ErrNotFound}
	}
	c, ok := object.(*structure.Chunk)
	if !ok || c.Key != k {
		return nil, fmt.Errorf("chunk %v: %w", k, v.engine.corrupt(p, "another chunk stands there"))
	}
	return c.Bytes, nil
}

// readObject reads the record that an index value points at. The caller compares
// what it finds with what it wanted.
func readObject(r *journal.Reader, value []byte) (structure.Record, keys.Place, error) {
	p, err := keys.ReadPlace(value)
	if err != nil {
		return nil, p, err
	}
	object, err := r.Object(p.Frame, p.Record, p.Size)
	return object, p, err
}

func (e *Engine) corrupt(p keys.Place, what string) error {
	return &backend.CorruptError{File: e.journal.SegmentName(p.Frame.Segment), Offset: p.Record, What: what}
}
