// Package search searches a store. A search first brings an index up to date, or as far as Query.UpdateFor allows.
//
// The index of a store in a directory is a SQLite file next to the journal. It is rebuilt if it is missing or damaged,
// so the file can be deleted at any time. The index of a store on a server is in tables of the server, for all
// processes: any of them may bring it up to date.
//
// An index is by content: a text that is used several times is indexed once, with the steps that use it. Result texts
// are read from the store. With an Embedder, the index also has a vector for each text; it is in a file then, also for a
// store on a server.
package search

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Index finds messages, documents, assets and summaries. It is safe for concurrent use.
type Index struct {
	store *lineage.Store
	index index
}

// index is an index in a file, or one that an engine shares.
type index interface {
	update(ctx context.Context, until time.Time) error
	Embed(ctx context.Context) error
	search(ctx context.Context, f *activeSearch) ([]Hit, error)
	Close() error
}

var _ chat.Searcher = (*Index)(nil)

// Open opens the index of a store, without updating it. dir is for the file; an index on a server has none. Close the
// index before the store.
func Open(ctx context.Context, store *lineage.Store, dir string, o Options) (*Index, error) {
	if (o.Embedder.Model == "") != (o.Embedder.Embed == nil) {
		return nil, fmt.Errorf("search index: %w: an embedder needs a model and a function", lineage.ErrInvalid)
	}
	if e, ok := write.Inner(write.Of(store).Engine()).(searched.Engine); ok && o.Embedder.Embed == nil {
		return &Index{store, &sharedIndex{e.SearchIndex(), store, o}}, nil
	}
	file, err := derivedfile.Open(ctx, store, dir, fileConfig())
	return &Index{store, &fileIndex{file: file, store: store, options: o, embedding: semaphore.New(1)}}, err
}

func fileConfig() derivedfile.Config {
	return derivedfile.Config{Name: FileName, Label: "search index", Format: format, Schema: schema, Meta: metaColumns}
}

// Update brings the index up to date.
func (x *Index) Update(ctx context.Context) error { return x.index.update(ctx, time.Time{}) }

// Embed updates the index and its embeddings. A text is embedded once, however often it is used, and only if a thread
// or context sees it. Each batch is stored, so after an error the next call continues with the rest.
func (x *Index) Embed(ctx context.Context) error { return x.index.Embed(ctx) }

// Close closes the index. Its data stays.
func (x *Index) Close() error { return x.index.Close() }

// Search updates the index, and its embeddings if it searches for a vector, and returns the matches, best first. The
// rank of words depends only on what is in scope. A damaged index is rebuilt.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Limit < 0 {
		return nil, fmt.Errorf("limit %d: %w", q.Limit, lineage.ErrInvalid)
	}
	q.Limit = cmp.Or(q.Limit, chat.DefaultSearchLimit)
	f := &activeSearch{store: x.store, Query: q, scope: q.scope()}
	if q.Vector != nil {
		if q.Text != "" || !vector.HasDirection(q.Vector) {
			return nil, fmt.Errorf("search for a vector: %w: finite numbers that are not all 0, and no text", lineage.ErrInvalid)
		}
	} else {
		parsed, err := query.Parse(q.Text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, lineage.ErrInvalid)
		}
		if parsed == nil {
			return nil, nil
		}
		f.matcher = query.NewMatcher(parsed)
	}
	if q.Among != nil {
		for t, err := range q.Among {
			if err != nil {
				return nil, err
			}
			f.scope.Among = append(f.scope.Among, t.ID())
		}
	}
	hits, err := x.index.search(ctx, f)
	if err == nil && f.behind > 0 && q.Behind != nil {
		q.Behind(f.behind, f.outdated)
	}
	return hits, err
}
