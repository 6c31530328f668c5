package write

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Run implements backend.Reader.
func (s *Stage) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	if own, ok := s.runs[id]; ok {
		return own, nil
	}
	return s.Reader.Run(ctx, id)
}

// Ancestry implements backend.Reader.
func (s *Stage) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	var all []structure.RunInfo
	for len(all) < limit && !id.IsZero() {
		own, ok := s.runs[id]
		if !ok {
			rest, err := s.Reader.Ancestry(ctx, id, limit-len(all))
			return append(all, rest...), err
		}
		all = append(all, own)
		id = own.Parent.Run
	}
	return all, nil
}

// Last implements backend.Reader.
func (s *Stage) Last(ctx context.Context, id structure.RunID) (structure.SpanRef, error) {
	if own := s.spans[id]; len(own) > 0 {
		return own[len(own)-1].Ref, nil
	}
	if _, own := s.runs[id]; own {
		return structure.SpanRef{}, nil
	}
	return s.Reader.Last(ctx, id)
}

// staged returns the span of the transaction at an address, or nil.
func (s *Stage) staged(at structure.SpanRef) *structure.Span {
	own := s.spans[at.Run]
	if len(own) == 0 || at.Seq < own[0].Ref.Seq || at.Seq > own[len(own)-1].Ref.Seq {
		return nil
	}
	return own[at.Seq-own[0].Ref.Seq]
}

// Path implements backend.Reader.
func (s *Stage) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	if s.staged(tip) == nil {
		return s.Reader.Path(ctx, tip, w, o) // what is after a span of the store is there too
	}
	return func(yield func(*backend.Step, error) bool) {
		segments, err := structure.Segments(tip, w, backend.Runs(ctx, s))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, segment := range segments {
			if !s.segment(ctx, segment, o, yield) {
				return
			}
		}
	}
}

// segment yields the spans of a segment: those of the store, then those of the transaction.
func (s *Stage) segment(ctx context.Context, segment structure.Segment, o backend.PathOptions, yield func(*backend.Step, error) bool) bool {
	stored := segment.Last
	if own := s.spans[segment.Run.ID]; len(own) > 0 {
		stored = min(stored, own[0].Ref.Seq-1)
	}
	if stored >= segment.First {
		last := structure.SpanRef{Run: segment.Run.ID, Seq: stored}
		for step, err := range s.Reader.Path(ctx, last, structure.Window{From: segment.Run.Position(segment.First)}, o) {
			if !yield(step, err) || err != nil {
				return false
			}
		}
	}
	for seq := max(segment.First, stored+1); seq <= segment.Last; seq++ {
		step := &backend.Step{Position: segment.Run.Position(seq), Span: s.staged(structure.SpanRef{Run: segment.Run.ID, Seq: seq})}
		if o.Bodies {
			ids := make([]content.ID, len(step.Span.Usages))
			for i := range ids {
				ids[i] = step.Span.Usages[i].Content
			}
			var err error
			if step.Blocks, err = s.Blocks(ctx, ids); err != nil {
				yield(nil, err)
				return false
			}
		}
		if !yield(step, nil) {
			return false
		}
	}
	return true
}

// Blocks implements backend.Reader.
func (s *Stage) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	blocks := make([]*structure.Block, len(ids))
	for i, id := range ids {
		if blocks[i] = s.blocks[id]; blocks[i] != nil {
			continue
		}
		stored, err := s.Reader.Blocks(ctx, ids[i:i+1])
		if err != nil {
			return nil, err
		}
		blocks[i] = stored[0]
	}
	return blocks, nil
}

// Has implements backend.Reader.
func (s *Stage) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	has, err := s.Reader.Has(ctx, ids)
	for i := range has {
		has[i] = has[i] || s.blocks[ids[i]] != nil
	}
	return has, err
}

// SpanSet implements backend.Reader.
func (s *Stage) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	if own := s.sets[id]; own != nil {
		set := *own
		return &set, nil
	}
	return s.Reader.SpanSet(ctx, id)
}

// Reflog implements backend.Reader. The head of the context becomes an expectation, because each move changes
// it.
func (s *Stage) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return func(yield func(*structure.Reflog, error) bool) {
		if _, err := s.Context(ctx, id); err != nil && !isNotFound(err) {
			yield(nil, err)
			return
		}
		for r, err := range s.Reader.Reflog(ctx, id) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		for _, r := range s.moves[id] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Digest implements backend.Reader.
func (s *Stage) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	if s.staged(tip) != nil {
		return structure.Digest{}, outside("the digest of what is not committed yet")
	}
	return s.Reader.Digest(ctx, tip)
}

// LastMessage implements backend.Reader.
func (s *Stage) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	last, err := s.Reader.LastMessage(ctx, home)
	for run, spans := range s.spans {
		if info, err := s.Run(ctx, run); err != nil || info.Home != home {
			continue
		}
		for _, span := range spans {
			for i := range span.Usages {
				if at := span.Usages[i].CreatedAt; at.After(last) {
					last = at
				}
			}
		}
	}
	return last, err
}
