package main

import (
	"context"
	"sync"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server/page"
)

// pageUsage is the usage of a store, which is opened with the first report.
type pageUsage struct {
	store *lineage.Store
	dir   string

	mu    sync.Mutex
	index *usage.Index
}

// report is page.Options.Usage.
func (p *pageUsage) report(ctx context.Context, q page.UsageQuery) (rows []*records.Usage, total *records.Usage, err error) {
	index, err := p.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	by := []usage.By{usage.By(q.By)}
	report, err := index.Report(ctx, usage.Query{By: by, Since: q.Since})
	if err != nil {
		return nil, nil, err
	}
	for i := range report.Rows {
		rows = append(rows, report.Rows[i].Record(by))
	}
	return rows, report.TotalRecord(), nil
}

func (p *pageUsage) open(ctx context.Context) (*usage.Index, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.index != nil {
		return p.index, nil
	}
	index, err := usage.Open(ctx, p.store, p.dir, usage.Options{})
	p.index = index
	return index, err
}

// close closes the index. No report is at work.
func (p *pageUsage) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.index == nil {
		return nil
	}
	return p.index.Close()
}
