package serving

import (
	"context"
	"errors"
	"sync"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
)

// sharedIndexes are the indexes for search and usage, which the page, the API and agents share. Each is opened at its first
// use.
type sharedIndexes struct {
	store *lineage.Store
	dir   string
	// counts is set if costs are shown before someone has asked for the usage of the store, which reads all of it.
	counts bool

	mu    sync.Mutex
	texts *search.Index
	costs *usage.Index
	// remove removes the files of temporary indexes.
	remove []func() error

	threads threadCosts
}

// opened returns an index, opening it if necessary.
func opened[T any](p *sharedIndexes, slot **T, open func(dir string) (*T, error)) (*T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *slot == nil {
		index, remove, err := app.OpenDerived(p.dir, open)
		if err != nil {
			return nil, err
		}
		*slot, p.remove = index, append(p.remove, remove)
	}
	return *slot, nil
}

func (p *sharedIndexes) openTexts(ctx context.Context) (*search.Index, error) {
	return opened(p, &p.texts, func(dir string) (*search.Index, error) { return search.Open(ctx, p.store, dir, search.Options{}) })
}

func (p *sharedIndexes) openCosts(ctx context.Context) (*usage.Index, error) {
	return opened(p, &p.costs, func(dir string) (*usage.Index, error) { return usage.Open(ctx, p.store, dir, usage.Options{}) })
}

// close closes the indexes. They must not be in use.
func (p *sharedIndexes) close() (err error) {
	p.threads.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.texts != nil {
		err = p.texts.Close()
	}
	if p.costs != nil {
		err = errors.Join(err, p.costs.Close())
	}
	for _, remove := range p.remove {
		err = errors.Join(err, remove())
	}
	return err
}
