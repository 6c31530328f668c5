// Package search searches a store in a local directory. Its index is a SQLite file next to the
// journal. A search first brings the index up to date, and rebuilds it if it is missing or damaged,
// so the file can be deleted at any time.
//
// The index is by content: a text that is used several times is indexed once, with the steps that
// use it. Result texts are read from the store. With an Embedder, the index also has a vector for
// each text.
package search

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/derivedfile"
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
	// Embedder embeds texts for searches by vector. Word searches do not call it.
	Embedder Embedder
}

// Index finds messages, documents, assets and summaries. It is safe for concurrent use.
type Index struct {
	file    *derivedfile.File
	store   *lineage.Store
	options Options

	embedding chan struct{} // has an element while a goroutine embeds texts
}

var _ chat.Searcher = (*Index)(nil)

// Open opens the index of the store in a directory, without updating it. Close the index before the
// store.
func Open(ctx context.Context, store *lineage.Store, dir string, o Options) (*Index, error) {
	if (o.Embedder.Model == "") != (o.Embedder.Embed == nil) {
		return nil, fmt.Errorf("search index: %w: an embedder needs a model and a function", lineage.ErrInvalid)
	}
	file, err := derivedfile.Open(ctx, store, dir, derivedfile.Config{Name: FileName, Label: "search index", Format: format, Schema: schema, Meta: metaColumns})
	return &Index{file: file, store: store, options: o, embedding: make(chan struct{}, 1)}, err
}

// Remove removes the index in a directory, if any. A process that has it open rebuilds it before the
// next answer.
func Remove(dir string) error { return derivedfile.Remove(dir, FileName) }

// Close closes the index. The file stays.
func (x *Index) Close() error { return x.file.Close() }

// windowLimit is the number of changed subjects and records at which a transaction ends. 0 is the default of the
// follower.
var windowLimit = 0

// Update brings the index up to date.
func (x *Index) Update(ctx context.Context) error {
	return x.file.Update(ctx, derivedfile.Updating{Apply: apply, Limit: windowLimit, Progress: x.options.Progress})
}
