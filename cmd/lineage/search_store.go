package main

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/structure"
)

// search implements threads, with an index beside the store.
func (s *session) search(ctx context.Context, o *searchOptions) (hits []*hit, err error) {
	among, err := o.among()
	if err != nil {
		return nil, err
	}
	q := search.Query{Text: o.query, User: o.user, Roles: o.roles, Limit: min(o.limit, maxHits)}
	if among != nil {
		q.Among = s.store.Threads(ctx, *among)
	}
	if s.namedThread() != "" {
		q.Thread = s.thread.ID()
	}
	open := func(dir string, progress func(done, total uint64)) (*search.Index, error) {
		return search.Open(ctx, s.store, dir, search.Options{Progress: progress})
	}
	err = withDerived(s, "indexing", open, func(index *search.Index) error {
		found, err := index.Search(ctx, q)
		if err != nil {
			return err
		}
		for i := range found {
			h, err := s.hit(ctx, &found[i])
			if err != nil {
				return err
			}
			hits = append(hits, h)
		}
		return nil
	})
	return hits, err
}

// hit returns a hit for people or programs.
func (s *session) hit(ctx context.Context, found *search.Hit) (*hit, error) {
	r, err := hitRecord(ctx, s.store, found, nil)
	if err != nil {
		return nil, err
	}
	h := &hit{Hit: *r, createdAt: found.SummarizedAt}
	if found.Entry != nil {
		h.createdAt = found.Entry.CreatedAt
	}
	if s.json {
		return h, nil
	}
	for _, id := range found.Threads {
		if len(h.in) == maxHitThreads {
			break
		}
		t, err := s.store.View().Thread(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // it was deleted since
		}
		if err != nil {
			return nil, err
		}
		title, err := s.shownTitle(ctx, lineage.ThreadInfo{SourceID: t.SourceID, Title: t.Title, Active: t.Active})
		if err != nil {
			return nil, err
		}
		h.addIn(title, refs.Short(t.ID))
	}
	for _, id := range found.Contexts {
		if len(h.in) < maxHitThreads {
			h.in = append(h.in, "context "+refs.Short(id))
		}
	}
	return h, nil
}

// hitRecord returns the record of a hit. It names the threads that allows selects; nil selects all, and the contexts outside
// threads.
func hitRecord(ctx context.Context, store *lineage.Store, found *search.Hit, allows func(*structure.Thread) bool) (*records.Hit, error) {
	h := &records.Hit{Rank: found.Rank, Snippet: found.Snippet, Text: found.Text}
	if e := found.Entry; e != nil {
		h.ID, h.Kind, h.Text = e.Span.String(), e.Kind.String(), e.Excerpt()
		switch e.Kind {
		case structure.MessageUsage:
			h.Role = e.Role
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
			continue // it was deleted since
		}
		if err != nil {
			return nil, err
		}
		if allows == nil || allows(t) {
			h.Threads = append(h.Threads, records.HitThread{ID: chat.IDOfThread(t), Title: t.Title})
		}
	}
	if allows == nil {
		for _, id := range found.Contexts {
			h.Contexts = append(h.Contexts, id.String())
		}
	}
	return h, nil
}
