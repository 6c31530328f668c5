package serving

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/sources"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/resume"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/api"
)

// apiRoutes returns the routes of the API.
func apiRoutes(s *app.OpenStore, logger *slog.Logger, from *sharedIndexes) []server.Route {
	to := &transfers{s}
	return api.New(api.Options{
		Store: s.Store, Logger: logger, Search: from.searchFor, SearchChat: from.searchChat, Usage: from.usageFor,
		Import: to.importArchive, Resume: to.resume,
	}).Routes()
}

// searchFor is api.Options.Search.
func (p *sharedIndexes) searchFor(ctx context.Context, q api.SearchQuery) (hits []*records.Hit, err error) {
	query := search.Query{Text: q.Text, Roles: q.Roles, Thread: q.Thread, Among: q.Among, Limit: q.Limit}
	found, err := p.searchTexts(ctx, query, q.Behind)
	if err != nil {
		return nil, err
	}
	for i := range found {
		r, err := threads.HitRecord(ctx, p.store, &found[i], &q.Scope)
		if err != nil {
			return nil, err
		}
		if !q.Scope.All() && len(r.Threads) == 0 {
			continue // no thread of the caller contains it any more
		}
		hits = append(hits, r)
	}
	return hits, nil
}

// searchChat is api.Options.SearchChat.
func (p *sharedIndexes) searchChat(ctx context.Context, chatID, query string, o chat.SearchOptions) iter.Seq2[chat.SearchResult, error] {
	index, err := p.openTexts(ctx)
	if err != nil {
		return func(yield func(chat.SearchResult, error) bool) { yield(chat.SearchResult{}, err) }
	}
	return index.MessagesOf(ctx, chatID, query, o)
}

// usageFor is api.Options.Usage.
func (p *sharedIndexes) usageFor(ctx context.Context, q api.UsageQuery) ([]*records.Usage, error) {
	keys := []usage.By{}
	for _, name := range q.By {
		if !slices.Contains(usage.Keys, usage.By(name)) {
			return nil, fmt.Errorf("by %.100q: %w: must be one of %v", name, lineage.ErrInvalid, usage.Keys)
		}
		keys = append(keys, usage.By(name))
	}
	index, err := p.openCosts(ctx)
	if err != nil {
		return nil, err
	}
	report, err := index.Report(ctx, usage.Query{
		By: keys, Since: q.Since, Until: q.Until, Zone: q.Zone, Thread: q.Thread, Agent: q.Agent, Model: q.Model, Users: q.Users, Projects: q.Projects,
	})
	if err != nil {
		return nil, err
	}
	return append(report.Records(keys), report.TotalRecord()), nil
}

// importArchive is api.Options.Import.
func (t *transfers) importArchive(ctx context.Context, q api.ImportQuery) (*records.Imported, error) {
	begun, err := importer.Begin(ctx, archive.Stream("", q.Archive), importer.Options{
		Format: q.Format, Formats: sources.Formats(), UserID: q.User, Prefix: q.Prefix,
	})
	if err != nil {
		return nil, notArchive(err)
	}
	defer begun.Close()
	report, err := begun.Into(t.Store)
	if err != nil {
		return nil, notArchive(err)
	}
	return sources.ImportedRecord(&report), nil
}

// notArchive returns the error of an import. It is the caller's error if the archive cannot be read.
func notArchive(err error) error {
	var limit *archive.LimitError
	switch {
	case errors.As(err, &limit):
		return fmt.Errorf("%w: %w", lineage.ErrTooLarge, err)
	case errors.Is(err, archive.ErrUnknownFormat), errors.Is(err, archive.ErrNothingFound):
		return fmt.Errorf("%w: %w", lineage.ErrInvalid, err)
	}
	return err
}

// resume is api.Options.Resume.
func (t *transfers) resume(ctx context.Context, q api.ResumeQuery) (*records.Resumed, error) {
	if q.Dir != "" && !filepath.IsAbs(q.Dir) {
		return nil, fmt.Errorf("dir %.100q: %w: must be a full path", q.Dir, lineage.ErrInvalid)
	}
	made, err := t.session(ctx, q.At, resume.Options{Agent: q.Agent, Thread: q.Thread, Dir: q.Dir})
	if isNoSession(err) {
		err = fmt.Errorf("%w: %w", lineage.ErrInvalid, err)
	}
	if err != nil {
		return nil, err
	}
	if q.DryRun {
		return tried(ctx, made)
	}
	const written = true
	r := sources.ResumedRecord(made, written)
	size, err := made.Write(ctx)
	r.Lines, r.Bytes = size.Lines, size.Bytes
	return r, err
}
