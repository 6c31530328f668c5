package serving

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
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
	// indexing brings texts up to date for later searches.
	indexing background
}

// UpdateFor is the time in which a search brings the index of texts up to date, before it answers from what the index has. Tests
// change it.
var UpdateFor = 3 * time.Second

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

// searchTexts searches the store. If the index of texts is not up to date in time, it goes on with that in the background, and
// tells behind how many commits the index does not have.
func (p *sharedIndexes) searchTexts(ctx context.Context, q search.Query, behind func(commits uint64)) ([]search.Hit, error) {
	index, err := p.openTexts(ctx)
	if err != nil {
		return nil, err
	}
	q.UpdateFor = UpdateFor
	if running, _ := p.indexing.state(); running {
		q.UpdateFor /= 10 // there is much to index, so waiting gains little
	}
	q.Behind = func(commits uint64, why error) {
		behind(commits)
		if errors.Is(why, derived.ErrUnfinished) {
			p.indexing.start(func(ctx context.Context) { _ = index.Update(ctx) }) // the next search reports the error
		}
	}
	return index.Search(ctx, q)
}

func (p *sharedIndexes) openCosts(ctx context.Context) (*usage.Index, error) {
	return opened(p, &p.costs, func(dir string) (*usage.Index, error) { return usage.Open(ctx, p.store, dir, usage.Options{}) })
}

// close closes the indexes. They must not be in use.
func (p *sharedIndexes) close() (err error) {
	p.threads.computing.end()
	p.indexing.end()
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
