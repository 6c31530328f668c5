package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// tree implements threads.
func (s *session) tree(ctx context.Context, o *treeOptions) error {
	t, err := s.threadNamed(ctx, o.thread)
	if err != nil {
		return err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	g, err := graph.Of(ctx, s.store, t)
	if err != nil {
		return err
	}
	if s.json {
		if err := s.emitHeads(ctx, t); err != nil {
			return err
		}
		for l := range g.Lines() {
			if err := s.emitNodes(ctx, l.At(l.Last).Ref(), l.Last); err != nil {
				return err
			}
		}
		return nil
	}
	f := &forest{app: s.app, Graph: g, full: o.full, point: func(ctx context.Context, at graph.Place) (*treePoint, error) {
		return s.treePoint(ctx, at.Ref())
	}}
	title, err := s.shownTitle(ctx, info)
	if err != nil {
		return err
	}
	return f.draw(ctx, title, shortID(info.ID.String()))
}

// reachOf returns what a thread has: the histories of its contexts and checkpoints, and the messages that it keeps.
func (s *session) reachOf(ctx context.Context, t *lineage.Thread) (backend.Reach, error) {
	state, err := s.store.View().Thread(ctx, t.ID())
	if err != nil {
		return nil, err
	}
	return backend.ReachOf(ctx, s.store.View(), state)
}

// emitHeads prints the records of a thread, its contexts and its checkpoints.
func (s *session) emitHeads(ctx context.Context, t *lineage.Thread) error {
	thread, err := s.threadRecord(ctx, t)
	if err != nil {
		return err
	}
	if err := errors.Join(s.emit(thread), s.listContexts(ctx, t.ID(), &contextsOptions{})); err != nil {
		return err
	}
	checkpoints, err := s.listCheckpoints(ctx, t.ID().String())
	for _, c := range checkpoints {
		err = errors.Join(err, s.emit(c))
	}
	return err
}

// emitNodes prints the last messages of a history as nodes.
func (s *session) emitNodes(ctx context.Context, tip lineage.SpanRef, last uint64) error {
	for e, err := range s.store.History(ctx, tip, lineage.Window{Last: last}) {
		if err != nil {
			return err
		}
		parent, err := records.ParentOf(ctx, s.store, e)
		if err != nil {
			return err
		}
		text, err := s.line(ctx, e)
		if err != nil {
			return err
		}
		if err := s.emit(&records.Node{
			ID: records.EntryID(e), Parent: records.SpanID(parent), Position: e.Position, Role: e.Role, ContentID: e.Content.String(),
			Preview: screen.Cut(text, 120), SpanSet: records.ID(e.Set), CreatedAt: e.CreatedAt.UTC(),
		}); err != nil {
			return err
		}
	}
	return nil
}

// treePoint returns what a tree shows of a span.
func (s *session) treePoint(ctx context.Context, ref lineage.SpanRef) (*treePoint, error) {
	entries, err := s.store.Span(ctx, ref)
	if err != nil {
		return nil, err
	}
	m, err := s.store.Transcribe(ctx, entries[0], records.MaxPreview)
	if err != nil {
		return nil, err
	}
	speaker, text := transcript.Line(m)
	if len(entries) > 1 {
		text = fmt.Sprintf("(and %d more) %s", len(entries)-1, text)
	}
	return &treePoint{speaker, m.Role, text}, nil
}
