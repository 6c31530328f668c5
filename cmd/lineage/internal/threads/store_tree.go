package threads

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// Tree implements Keeper.
func (s InStore) Tree(ctx context.Context, o *TreeOptions) error {
	t, err := ThreadNamed(ctx, s.OpenStore, o.Thread)
	if err != nil {
		return err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	g, err := graph.Of(ctx, s.Store, t)
	if err != nil {
		return err
	}
	if s.JSON {
		if err := s.emitHeads(ctx, t); err != nil {
			return err
		}
		for l := range g.Lines() {
			if err := emitNodes(ctx, s.OpenStore, l.At(l.Last).Ref(), l.Last); err != nil {
				return err
			}
		}
		return nil
	}
	f := &show.Forest{App: s.App, Graph: g, Full: o.Full, Point: func(ctx context.Context, at graph.Place) (*show.TreePoint, error) {
		return treePoint(ctx, s.OpenStore, at.Ref())
	}}
	title, err := show.ShownTitle(ctx, s.OpenStore, info)
	if err != nil {
		return err
	}
	return f.Draw(ctx, title, show.ShortID(info.ID.String()))
}

// emitHeads prints the records of a thread, its contexts and its checkpoints.
func (s InStore) emitHeads(ctx context.Context, t *lineage.Thread) error {
	thread, err := ThreadRecord(ctx, s.OpenStore, t)
	if err != nil {
		return err
	}
	if err := errors.Join(s.Emit(thread), ListContexts(ctx, s.OpenStore, t.ID(), &ContextsOptions{})); err != nil {
		return err
	}
	checkpoints, err := s.ListCheckpoints(ctx, t.ID().String())
	for _, c := range checkpoints {
		err = errors.Join(err, s.Emit(c))
	}
	return err
}

// emitNodes prints the last messages of a history as nodes.
func emitNodes(ctx context.Context, s *app.OpenStore, tip lineage.SpanRef, last uint64) error {
	for e, err := range s.Store.History(ctx, tip, lineage.Window{Last: last}) {
		if err != nil {
			return err
		}
		parent, err := records.ParentOf(ctx, s.Store, e)
		if err != nil {
			return err
		}
		text, err := show.Line(ctx, s, e)
		if err != nil {
			return err
		}
		if err := s.Emit(&records.Node{
			ID: records.EntryID(e), Parent: records.SpanID(parent), Position: e.Position, Role: e.Role, ContentID: e.Content.String(),
			Preview: screen.Cut(text, 120), SpanSet: records.ID(e.Set), CreatedAt: e.CreatedAt.UTC(),
		}); err != nil {
			return err
		}
	}
	return nil
}

// treePoint returns the content of a span in a tree.
func treePoint(ctx context.Context, s *app.OpenStore, ref lineage.SpanRef) (*show.TreePoint, error) {
	entries, err := s.Store.Span(ctx, ref)
	if err != nil {
		return nil, err
	}
	m, err := s.Store.Transcribe(ctx, entries[0], records.MaxPreview)
	if err != nil {
		return nil, err
	}
	speaker, text := transcript.Line(m)
	if len(entries) > 1 {
		text = fmt.Sprintf("(and %d more) %s", len(entries)-1, text)
	}
	return &show.TreePoint{Speaker: speaker, Role: m.Role, Text: text}, nil
}
