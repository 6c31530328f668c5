package main

import (
	"context"
	"errors"
	"os"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/structure"
)

// search implements threads, with an index beside the store. If it cannot be written, the index is
// built for this search only.
func (s *session) search(ctx context.Context, o *searchOptions) (hits []*hit, err error) {
	line := s.progress("indexing", func(n int64) string { return screen.Plural(n, "commit") })
	defer line.Done()
	options := search.Options{Progress: func(done, total uint64) { line.Show(int64(done), int64(total)) }}
	index, err := search.Open(ctx, s.store, s.dir, options)
	if vfs.IsUnwritable(err) {
		var dir string
		if dir, err = os.MkdirTemp("", "lineage-search-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		index, err = search.Open(ctx, s.store, dir, options)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	among, err := o.among()
	if err != nil {
		return nil, err
	}
	q := search.Query{Text: o.query, User: o.user, Among: among, Roles: o.roles, Limit: min(o.limit, maxHits)}
	if s.namedThread() != "" {
		q.Thread = s.thread.ID()
	}
	found, err := index.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	for i := range found {
		h, err := s.hit(ctx, &found[i])
		if err != nil {
			return nil, err
		}
		hits = append(hits, h)
	}
	return hits, nil
}

func (s *session) hit(ctx context.Context, found *search.Hit) (*hit, error) {
	h := &hit{Hit: records.Hit{Rank: found.Rank, Snippet: found.Snippet, Text: found.Text}}
	if e := found.Entry; e != nil {
		h.ID, h.Kind, h.createdAt, h.Text = e.Span.String(), e.Kind.String(), e.CreatedAt, e.Text()
		switch e.Kind {
		case structure.MessageUsage:
			h.Role = e.Role
			text, err := s.store.Text(ctx, e)
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
		h.ID, h.Kind, h.createdAt = found.Summary.String(), "summary", found.SummarizedAt
	}
	for _, id := range found.Threads {
		t, err := s.store.View().Thread(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // it was deleted since
		}
		if err != nil {
			return nil, err
		}
		h.Threads = append(h.Threads, records.HitThread{ID: chat.IDOfThread(t), Title: t.Title})
		if s.json || len(h.in) == maxHitThreads {
			continue
		}
		title, err := s.shownTitle(ctx, lineage.ThreadInfo{SourceID: t.SourceID, Title: t.Title, Active: t.Active})
		if err != nil {
			return nil, err
		}
		h.addIn(title, refs.Short(t.ID))
	}
	for _, id := range found.Contexts {
		h.Contexts = append(h.Contexts, id.String())
		if len(h.in) < maxHitThreads {
			h.in = append(h.in, "context "+refs.Short(id))
		}
	}
	return h, nil
}
