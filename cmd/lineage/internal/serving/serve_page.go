package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/resume"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/page"
	"github.com/lineage-store/lineage/structure"
)

// pageRoutes returns the routes of the page.
func pageRoutes(s *app.OpenStore, readOnly bool, logger *slog.Logger, from *sharedIndexes) ([]server.Route, error) {
	p, err := page.New(page.Options{
		Store: s.Store, ReadOnly: readOnly, Logger: logger, Search: from.search, Usage: from.usage, Cost: from.cost, CostsPending: from.costsPending,
		Resume: (&transfers{s}).tryResume, Agents: resume.Agents(),
	})
	if err != nil {
		return nil, err
	}
	return p.Routes(), nil
}

// search is page.Options.Search.
func (p *sharedIndexes) search(ctx context.Context, q page.SearchQuery) (hits []page.Hit, err error) {
	query := search.Query{Text: q.Text, Limit: q.Limit}
	if q.Among != nil {
		query.Among = p.store.Threads(ctx, *q.Among)
	}
	found, err := p.searchTexts(ctx, query, q.Behind)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i].Entry != nil { // the others are summaries
			hits = append(hits, page.Hit{Entry: found[i].Entry, Role: found[i].Role, Threads: found[i].Threads, Snippet: found[i].Snippet})
		}
	}
	return hits, nil
}

// usage is page.Options.Usage.
func (p *sharedIndexes) usage(ctx context.Context, q page.UsageQuery) (rows []*records.Usage, total *records.Usage, err error) {
	index, err := p.openCosts(ctx)
	if err != nil {
		return nil, nil, err
	}
	keys := []usage.By{usage.By(q.By)}
	report, err := index.Report(ctx, usage.Query{By: keys, Since: q.Since})
	if err != nil {
		return nil, nil, err
	}
	return report.Records(keys), report.TotalRecord(), nil
}

// tryResume is page.Options.Resume.
func (t *transfers) tryResume(ctx context.Context, q page.ResumeQuery) (*page.Resumed, error) {
	o := resume.Options{Agent: q.Agent, Thread: q.Thread}
	made, err := t.session(ctx, q.At, o)
	note := ""
	if errors.Is(err, resume.ErrNoFolder) { // the command names another folder
		note = err.Error() + ": the command continues in the folder that it is run in, or that --dir names"
		if o.Dir, err = os.UserHomeDir(); err == nil {
			made, err = t.session(ctx, q.At, o)
		}
	}
	if isNoSession(err) {
		err = fmt.Errorf("%w: %w", page.ErrNoSession, err)
	}
	if err != nil {
		return nil, err
	}
	r, err := tried(ctx, made)
	return &page.Resumed{Resumed: r, Losses: made.Losses, Note: note}, err
}

// cost is page.Options.Cost.
func (p *sharedIndexes) cost(id lineage.ThreadID) string {
	return p.threads.cost(id, p.hasCosts(), p.costsByThread)
}

func (p *sharedIndexes) hasCosts() bool { return p.counts || usage.Exists(p.dir) }

// costsPending is page.Options.CostsPending.
func (p *sharedIndexes) costsPending(ctx context.Context) bool {
	head, err := p.store.View().Head(ctx)
	return err == nil && p.threads.pending(p.hasCosts(), head)
}

// costsByThread returns the cost of conversations as of a commit. It returns nil if that cannot be computed, as in a
// damaged store.
func (p *sharedIndexes) costsByThread(ctx context.Context) (map[lineage.ThreadID]string, lineage.Cursor) {
	head, err := p.store.View().Head(ctx)
	if err != nil {
		return nil, head
	}
	index, err := p.openCosts(ctx)
	if err != nil {
		return nil, head
	}
	report, err := index.Report(ctx, usage.Query{By: []usage.By{usage.Thread}})
	if err != nil {
		return nil, head
	}
	costs := make(map[lineage.ThreadID]string)
	for i := range report.Rows {
		row := &report.Rows[i]
		figures := row.Figures.Record()
		if id, err := structure.ParseID[lineage.ThreadID](row.Keys[0]); err == nil {
			costs[id] = figures.Money()
		}
	}
	return costs, head
}
