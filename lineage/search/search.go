// Package search searches a store. A search first brings an index up to date.
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
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// FileName is the name of the index in a store's directory.
const FileName = "search.db"

// Embedder embeds texts. Both fields are required.
type Embedder struct {
	// Model names the model. All texts are embedded again when it changes.
	Model string
	// Embed returns a vector for each text, in the same order. Searches do not find a text whose
	// vector is empty, all zeros, or not finite. Embed is not called concurrently by one index.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
}

// Options configure an index.
type Options struct {
	// Progress, when not nil, is called during updates with the number of indexed commits.
	Progress func(done, total uint64)
	// Behind, when not nil, is called by a search of an index on a server that this process may not change, with the
	// number of commits that the index does not have.
	Behind func(commits uint64)
	// Embedder embeds texts for searches by vector. Word searches do not call it.
	Embedder Embedder
}

// Index finds messages, documents, assets and summaries. It is safe for concurrent use.
type Index struct {
	store *lineage.Store
	index index
}

// index is an index in a file, or one that an engine shares.
type index interface {
	Update(ctx context.Context) error
	Embed(ctx context.Context) error
	search(ctx context.Context, f *finding) ([]Hit, error)
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
	file, err := derivedfile.Open(ctx, store, dir, derivedfile.Config{Name: FileName, Label: "search index", Format: format, Schema: schema, Meta: metaColumns})
	return &Index{store, &fileIndex{file: file, store: store, options: o, embedding: make(chan struct{}, 1)}}, err
}

// Update brings the index up to date.
func (x *Index) Update(ctx context.Context) error { return x.index.Update(ctx) }

// Embed updates the index and its embeddings. A text is embedded once, however often it is used, and only if a thread
// or context sees it. Each batch is stored, so after an error the next call continues with the rest.
func (x *Index) Embed(ctx context.Context) error { return x.index.Embed(ctx) }

// Close closes the index. Its data stays.
func (x *Index) Close() error { return x.index.Close() }

// fileIndex is an index in a file.
type fileIndex struct {
	file    *derivedfile.File
	store   *lineage.Store
	options Options

	embedding chan struct{} // has an element while a goroutine embeds texts
}

// Close implements index.
func (x *fileIndex) Close() error { return x.file.Close() }

// Update implements index.
func (x *fileIndex) Update(ctx context.Context) error {
	return x.file.Update(ctx, derivedfile.Updating{Apply: apply, Limit: searched.WindowLimit, Progress: x.options.Progress})
}
