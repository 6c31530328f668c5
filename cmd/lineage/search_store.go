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
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/structure"
)

// searchStore searches a store, through an index that is kept beside it. Where that cannot be written,
// the index is made for this search.
func searchStore(ctx context.Context, a *app, o *searchOptions) error {
	return a.read(ctx, func(ctx context.Context, s *session) (err error) {
		line := s.progress("indexing", func(n int64) string { return screen.Plural(n, "commit") })
		options := search.Options{Progress: func(done, total uint64) { line.Show(int64(done), int64(total)) }}
		index, err := search.Open(ctx, s.store, s.dir, options)
		if vfs.IsUnwritable(err) {
			var dir string
			if dir, err = os.MkdirTemp("", "lineage-search-"); err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			index, err = search.Open(ctx, s.store, dir, options)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, index.Close()) }()
		q := search.Query{Text: o.query, User: o.user, Roles: o.roles, Limit: min(o.limit, maxHits)}
		if s.namedThread() != "" {
			q.Thread = s.thread.ID()
		}
		found, err := index.Search(ctx, q)
		line.Done()
		if err != nil {
			return err
		}
		shown := &hitsOfStore{session: s, threads: make(map[string]*structure.Thread)}
		hits := make([]*hit, len(found))
		for i := range found {
			if hits[i], err = shown.hit(ctx, &found[i]); err != nil {
				return err
			}
		}
		return s.printHits(hits, func(id string) (string, error) { return shown.title(ctx, id) }, shown.short)
	})
}

// hitsOfStore shows what was found in a store.
type hitsOfStore struct {
	*session
	threads map[string]*structure.Thread // by the ids that are shown
}

func (s *hitsOfStore) hit(ctx context.Context, found *search.Hit) (*hit, error) {
	h := &hit{hitRecord: hitRecord{Rank: found.Rank, Snippet: found.Snippet, Text: found.Text}}
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
		s.threads[chat.IDOfThread(t)] = t
		h.Threads = append(h.Threads, hitThread{ID: chat.IDOfThread(t)})
	}
	for _, id := range found.Contexts {
		h.Contexts = append(h.Contexts, id.String())
	}
	return h, nil
}

// title returns the title of a thread; for a person how it begins if it has none.
func (s *hitsOfStore) title(ctx context.Context, id string) (string, error) {
	switch t := s.threads[id]; {
	case t == nil:
		return "", nil
	case t.Title != "" || s.json:
		return t.Title, nil
	default:
		return s.beginning(ctx, t.ID)
	}
}

// short returns what people call a thread or context.
func (s *hitsOfStore) short(id string) string {
	if t := s.threads[id]; t != nil {
		return refs.Short(t.ID)
	}
	if context, err := structure.ParseID[lineage.ContextID](id); err == nil {
		return refs.Short(context)
	}
	return id
}

// beginning returns what the list of threads shows of a thread without a title.
func (s *session) beginning(ctx context.Context, id lineage.ThreadID) (string, error) {
	thread, err := s.store.Thread(ctx, id)
	if err != nil {
		return "", err
	}
	r, err := s.threadRecord(ctx, thread)
	if err != nil {
		return "", err
	}
	return s.titleOf(ctx, r)
}
