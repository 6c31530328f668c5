package threads

import (
	"context"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// Append implements Keeper.
func (s InStore) Append(ctx context.Context, o *AppendOptions, items []lineage.Item) (*records.Appended, error) {
	if s.Thread == nil && o.Context == "" {
		if err := firstThread(ctx, s.OpenStore.App, s, items); err != nil {
			return nil, err
		}
	}
	found, err := s.Refs.Context(ctx, o.Context)
	if err != nil {
		return nil, err
	}
	if o.Together {
		items = []lineage.Item{lineage.Together(items...)}
	}
	extend := found.Context.Extend
	if o.After != "" {
		after, err := s.Refs.Find(ctx, o.After)
		if err != nil {
			return nil, err
		}
		extend = func(ctx context.Context, items ...lineage.Item) ([]lineage.SpanRef, error) {
			return found.Context.ExtendFrom(ctx, after.Span, items...)
		}
	}
	added, err := extend(ctx, items...)
	if err != nil {
		return nil, err
	}
	r := &records.Appended{Context: found.Context.ID().String(), Branch: found.Branch}
	if found.Thread != nil {
		r.Thread = found.Thread.ID().String()
	}
	for _, ref := range added {
		r.IDs = append(r.IDs, ref.String())
	}
	r.Tip = r.IDs[len(r.IDs)-1]
	r.Length, err = s.Store.Position(ctx, added[len(added)-1])
	return r, err
}

// BranchHome returns the thread for a branch that forks a context: the context's thread or, if it has none, that of
// the position.
func BranchHome(ctx context.Context, s *app.OpenStore, found *refs.Ref, branch *lineage.Context) (*lineage.Thread, error) {
	info, err := branch.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Thread.IsZero() {
		return s.Home(ctx, found)
	}
	return s.Store.Thread(ctx, info.Thread)
}

// Holder returns a context whose history has a position. It is the context that is named, else the one in which the position was
// found, else one of its thread.
func Holder(ctx context.Context, s *app.OpenStore, found *refs.Ref, name string) (*lineage.Context, error) {
	if name != "" {
		in, err := s.Refs.Context(ctx, name)
		if err != nil {
			return nil, err
		}
		return in.Context, nil
	}
	active, err := s.ContextOf(ctx, found)
	if err != nil {
		return nil, err
	}
	if found.Context != nil {
		return found.Context, nil
	}
	others, err := Collect(active.Thread.Contexts(ctx))
	if err != nil {
		return nil, err
	}
	runs := backend.Runs(ctx, s.Store.View())
	for _, c := range append([]*lineage.Context{active.Context}, others...) {
		tip, err := c.Tip(ctx)
		if err != nil {
			return nil, err
		}
		on, err := structure.IsAncestor(found.Span, tip, runs)
		if err != nil {
			return nil, err
		}
		if on {
			return c, nil
		}
	}
	return active.Context, nil
}

// History implements Keeper.
func (s InStore) History(ctx context.Context, o *LogOptions, r *show.Reader, visit func(*show.ReadMessage, []graph.Label) error) error {
	found, err := s.Refs.Find(ctx, o.At)
	if err != nil {
		return err
	}
	return HistoryAt(ctx, s.OpenStore, found, o, r, visit)
}

// HistoryAt is History at a position that was found already.
func HistoryAt(ctx context.Context, s *app.OpenStore, found *refs.Ref, o *LogOptions, r *show.Reader, visit func(*show.ReadMessage, []graph.Label) error) (err error) {
	var names map[lineage.SpanRef][]graph.Label
	if !s.JSON && found.Thread != nil {
		if names, err = graph.Labels(ctx, s.Store, found.Thread); err != nil {
			return err
		}
	}
	limit := int64(records.MaxText)
	if o.Oneline && !s.JSON {
		limit = records.MaxPreview
	}
	first := true
	for e, err := range s.Store.History(ctx, found.Span, lineage.Window{From: o.From, To: o.To, Last: o.Last}) {
		if err != nil {
			return err
		}
		if first && !o.Oneline {
			if err := show.LearnBefore(ctx, s, r, e); err != nil {
				return err
			}
		}
		first = false
		if !o.Wants(e.Kind.String(), e.SearchRole()) {
			continue
		}
		m, err := show.Message(ctx, s, e, limit)
		if err != nil {
			return err
		}
		if err := visit(m, names[e.Span]); err != nil {
			return err
		}
	}
	return nil
}

// Says implements Keeper.
func (s InStore) Says(ctx context.Context, _, id string) (string, error) {
	span, err := structure.ParseSpanRef(id)
	if err != nil {
		return "", err
	}
	entries, err := s.Store.Span(ctx, span)
	if err != nil {
		return "", err
	}
	return show.Line(ctx, s.OpenStore, entries[len(entries)-1])
}

// Show implements Keeper.
func (s InStore) Show(ctx context.Context, name string) error {
	found, err := s.Refs.Find(ctx, name)
	if err != nil {
		return err
	}
	if found.Context != nil && !found.Moved {
		return show.PrintContext(ctx, s.OpenStore, found)
	}
	return show.PrintSpan(ctx, s.OpenStore, found)
}
