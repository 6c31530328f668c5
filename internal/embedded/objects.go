package embedded

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
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
	value, ok, err := v.index.Get(blockKey(id))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &backend.SubjectError{Subject: "block", ID: id.String(), Err: backend.ErrNotFound}
	}
	if ok, err := v.notErased(id); err != nil {
		return nil, err
	} else if !ok {
		return nil, &backend.SubjectError{Subject: "block", ID: id.String(), Err: backend.ErrErased}
	}
	object, p, err := readObject(r, value)
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
	value, ok, err := v.index.Get(blockKey(id))
	if err != nil || !ok {
		return &structure.Block{Block: content.Block{ID: id}}, err
	}
	object, p, err := readObject(v.newReader(), value)
	if err != nil {
		return nil, fmt.Errorf("block %v: %w", id, err)
	}
	b, ok := object.(*structure.Block)
	if !ok || b.ID != id {
		return nil, fmt.Errorf("block %v: %w", id, v.engine.corrupt(p, "another block stands there"))
	}
	return &structure.Block{Block: b.Block}, nil
}

// Chunk implements backend.Reader.
func (v view) Chunk(ctx context.Context, k content.Key) ([]byte, error) {
	value, ok, err := v.index.Get(chunkKey(k))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &backend.SubjectError{Subject: "chunk", ID: k.String(), Err: backend.ErrNotFound}
	}
	object, p, err := readObject(v.newReader(), value)
	if err != nil {
		return nil, fmt.Errorf("chunk %v: %w", k, err)
	}
	c, ok := object.(*structure.Chunk)
	if !ok || c.Key != k {
		return nil, fmt.Errorf("chunk %v: %w", k, v.engine.corrupt(p, "another chunk stands there"))
	}
	return c.Bytes, nil
}

// readObject reads the record that an index value points at. The caller compares
// what it finds with what it wanted.
func readObject(r *journal.Reader, value []byte) (structure.Record, place, error) {
	p, err := readPlace(value)
	if err != nil {
		return nil, p, err
	}
	object, err := r.Object(p.frame, p.record, p.size)
	return object, p, err
}

func (e *Engine) corrupt(p place, what string) error {
	return &backend.CorruptError{File: e.journal.SegmentName(p.frame.Segment), Offset: p.record, What: what}
}
