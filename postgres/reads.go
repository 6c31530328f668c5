package postgres

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Reads are one round trip or a few. The first one of a call reads the state and what the call certainly needs; the others
// read as of that state.

// stateSource has a state of the store, or the latest one.
type stateSource interface {
	// withReader calls a function with a reader of the state, which has what is needed.
	withReader(ctx context.Context, n need, fn func(*stateReader) error) error
}

// reads implements the methods of backend.Reader that do not return sequences.
type reads struct{ source stateSource }

// answer calls a method of a view of a source.
func answer[T any](ctx context.Context, s stateSource, n need, fn func(*read.View) (T, error)) (result T, err error) {
	err = s.withReader(ctx, n, func(t *stateReader) (err error) {
		result, err = fn(t.view())
		return err
	})
	return result, err
}

func keysNeed(ks ...[]byte) need { return need{Need: read.Need{Keys: ks}} }

func blocksNeed(ids []content.ID) (n need) {
	for _, id := range ids {
		n.Keys = append(n.Keys, keys.Block(id))
	}
	return n
}

func chunksNeed(all []content.Key) (n need) {
	for _, k := range all {
		n.Keys = append(n.Keys, keys.Chunk(k))
	}
	return n
}

func lastNeed(run structure.RunID) need {
	n := keysNeed(keys.Of(keys.TableRun, run[:]))
	n.Lasts = []read.Range{read.Under(keys.Of(keys.TableSpan, run[:]))}
	return n
}

// Head implements backend.Reader.
func (r reads) Head(ctx context.Context) (backend.Cursor, error) {
	return answer(ctx, r.source, need{}, func(v *read.View) (backend.Cursor, error) { return v.Head(ctx) })
}

// Context implements backend.Reader.
func (r reads) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return answer(ctx, r.source, keysNeed(keys.Of(keys.TableContext, id[:]), keys.Of(keys.TableTip, id[:])), func(v *read.View) (backend.Context, error) { return v.Context(ctx, id) })
}

// Remnant implements backend.Reader.
func (r reads) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return answer(ctx, r.source, keysNeed(keys.Of(keys.TableRemnant, id[:])), func(v *read.View) (*structure.Remnant, error) { return v.Remnant(ctx, id) })
}

// Thread implements backend.Reader.
func (r reads) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return answer(ctx, r.source, keysNeed(keys.Of(keys.TableThread, id[:])), func(v *read.View) (*structure.Thread, error) { return v.Thread(ctx, id) })
}

// LastMessage implements backend.Reader.
func (r reads) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return answer(ctx, r.source, keysNeed(keys.AppendMessage(nil, home)), func(v *read.View) (time.Time, error) { return v.LastMessage(ctx, home) })
}

// Branch implements backend.Reader.
func (r reads) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return answer(ctx, r.source, keysNeed(keys.Branch(thread, name)), func(v *read.View) (*structure.Branch, error) { return v.Branch(ctx, thread, name) })
}

// Checkpoint implements backend.Reader.
func (r reads) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return answer(ctx, r.source, keysNeed(keys.Checkpoint(thread, name)), func(v *read.View) (*structure.Checkpoint, error) { return v.Checkpoint(ctx, thread, name) })
}

// Run implements backend.Reader.
func (r reads) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return answer(ctx, r.source, keysNeed(keys.Of(keys.TableRun, id[:])), func(v *read.View) (structure.RunInfo, error) { return v.Run(ctx, id) })
}

// Ancestry implements backend.Reader.
func (r reads) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return answer(ctx, r.source, keysNeed(keys.Of(keys.TableRun, id[:])), func(v *read.View) ([]structure.RunInfo, error) { return v.Ancestry(ctx, id, limit) })
}

// Last implements backend.Reader.
func (r reads) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return answer(ctx, r.source, lastNeed(run), func(v *read.View) (structure.SpanRef, error) { return v.Last(ctx, run) })
}

// Digest implements backend.Reader.
func (r reads) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return answer(ctx, r.source, keysNeed(keys.Span(tip)), func(v *read.View) (structure.Digest, error) { return v.Digest(ctx, tip) })
}

// Value implements backend.Reader.
func (r reads) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return answer(ctx, r.source, need{}, func(v *read.View) (backend.Value, error) { return v.Value(ctx, key) })
}

// SpanSet implements backend.Reader.
func (r reads) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return answer(ctx, r.source, keysNeed(keys.Of(keys.TableSpanSet, id[:])), func(v *read.View) (*structure.SpanSet, error) { return v.SpanSet(ctx, id) })
}

// Has implements backend.Reader.
func (r reads) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return answer(ctx, r.source, blocksNeed(ids), func(v *read.View) ([]bool, error) { return v.Has(ctx, ids) })
}

// Blocks implements backend.Reader.
func (r reads) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return answer(ctx, r.source, blocksNeed(ids), func(v *read.View) ([]*structure.Block, error) { return v.Blocks(ctx, ids) })
}

// Chunks implements backend.Reader.
func (r reads) Chunks(ctx context.Context, all []content.Key) ([][]byte, error) {
	return answer(ctx, r.source, chunksNeed(all), func(v *read.View) ([][]byte, error) { return v.Chunks(ctx, all) })
}
