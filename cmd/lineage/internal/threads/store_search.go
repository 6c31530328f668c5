package threads

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/structure"
)

// Search implements Keeper, with the index of the store.
func (s InStore) Search(ctx context.Context, o *SearchOptions) (hits []*Hit, err error) {
	among, text, err := o.read()
	if err != nil {
		return nil, err
	}
	q := search.Query{Text: text, User: o.User, Roles: o.Roles, Limit: min(o.Limit, maxHits)}
	if among != nil {
		q.Among = s.Store.Threads(ctx, *among)
	}
	if s.NamedThread() != "" {
		q.Thread = s.Thread.ID()
	}
	q.Behind = func(commits uint64, why error) {
		if last := amount.Plural(int64(commits), "commit"); errors.Is(why, derived.ErrUnfinished) {
			s.Warn("the last %s cannot be found yet: search again to index more, or all with --index-for 0", last)
		} else {
			s.Warn("the last %s cannot be found: the store may only be read, and nobody else has searched since", last)
		}
	}
	open := func(dir string, progress func(done, total uint64)) (*search.Index, error) {
		if q.UpdateFor = o.IndexFor; dir != s.Dir {
			q.UpdateFor = 0 // the index is made for this search only
		}
		return search.Open(ctx, s.Store, dir, search.Options{Progress: progress})
	}
	err = app.WithDerived(s.OpenStore, "indexing", open, func(index *search.Index) error {
		found, err := index.Search(ctx, q)
		if err != nil {
			return err
		}
		for i := range found {
			h, err := hit(ctx, s.OpenStore, &found[i])
			if err != nil {
				return err
			}
			hits = append(hits, h)
		}
		return nil
	})
	return hits, err
}

func hit(ctx context.Context, s *app.OpenStore, found *search.Hit) (*Hit, error) {
	r, err := HitRecord(ctx, s.Store, found, &access.Scope{})
	if err != nil {
		return nil, err
	}
	h := &Hit{Hit: *r, CreatedAt: found.SummarizedAt}
	if found.Entry != nil {
		h.CreatedAt = found.Entry.CreatedAt
	}
	for _, id := range found.Threads {
		if s.JSON || len(h.In) == maxHitThreads {
			break
		}
		t, err := s.Store.View().Thread(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		title, err := show.ShownTitle(ctx, s, lineage.ThreadInfo{ID: t.ID, SourceID: t.SourceID, Title: t.Title, Active: t.Active})
		if err != nil {
			return nil, err
		}
		h.addIn(title, refs.Short(t.ID))
	}
	for _, id := range found.Contexts {
		if len(h.In) < maxHitThreads {
			h.In = append(h.In, "context "+refs.Short(id))
		}
	}
	return h, nil
}

// HitRecord returns the record of a hit for a caller of a scope. It names the threads in the scope, with the ids that their
// callers chose, and contexts outside threads if the scope is the whole store.
func HitRecord(ctx context.Context, store *lineage.Store, found *search.Hit, scope *access.Scope) (*records.Hit, error) {
	h := &records.Hit{Rank: found.Rank, Snippet: found.Snippet, Text: found.Text}
	if e := found.Entry; e != nil {
		h.ID, h.Kind, h.Text = e.Span.String(), e.Kind.String(), e.Excerpt()
		switch e.Kind {
		case structure.MessageUsage:
			h.Role = found.Role
			text, err := store.Text(ctx, e)
			switch {
			case err == nil:
				h.Text = text
			case !errors.Is(err, lineage.ErrErased):
				return nil, err
			}
		case structure.DocumentUsage:
			h.Name = e.Document
		default:
			h.Name = e.Filename
		}
	} else {
		h.ID, h.Kind = found.Summary.String(), "summary"
	}
	for _, id := range found.Threads {
		t, err := store.View().Thread(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		if scope.Allows(&lineage.ThreadInfo{UserID: t.UserID, Metadata: t.Metadata}) {
			record := records.NewHitThread(t)
			record.SourceID = scope.Chosen(record.SourceID)
			h.Threads = append(h.Threads, record)
		}
	}
	if scope.All() {
		for _, id := range found.Contexts {
			h.Contexts = append(h.Contexts, id.String())
		}
	}
	return h, nil
}
