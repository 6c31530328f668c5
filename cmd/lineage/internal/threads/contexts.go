package threads

import (
	"context"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// ListContexts prints the contexts of a thread.
func ListContexts(ctx context.Context, s *app.OpenStore, thread lineage.ThreadID, o *ContextsOptions) error {
	var after lineage.ContextID
	if o.After != "" {
		var err error
		if after, err = structure.ParseID[lineage.ContextID](o.After); err != nil {
			return app.Usagef("--after: %w", err)
		}
	}
	list := s.List("", "ID", "KIND", "NAME", "MESSAGES", "CREATED")
	listed, more := 0, false
	for found, err := range s.Store.View().Contexts(ctx, thread, after) {
		if err != nil {
			return err
		}
		if found.Thread != thread { // without a thread, all contexts are listed
			continue
		}
		if more = o.Limit > 0 && listed == o.Limit; more {
			break
		}
		c, err := s.Store.Context(ctx, found.ID)
		if err != nil {
			return err
		}
		r, err := records.OfContext(ctx, s.Store, c)
		if err != nil {
			return err
		}
		list.Add(r, app.MarkCell(r.Active), app.IDCell(refs.Short(found.ID)), app.PlainCell(r.Kind), app.PlainCell(contextName(r)), app.CountCell(r.Length), app.TimeCell(r.CreatedAt))
		listed, after = listed+1, found.ID
	}
	if err := list.End("no contexts"); err != nil || !more {
		return err
	}
	s.Note("more with --after %s", after)
	return nil
}

// contextName returns the branch name of a context, or the name that an import gave a subagent.
func contextName(r *records.Context) string {
	if r.Kind == string(graph.KindSubagent) {
		return strings.TrimPrefix(lineage.AsideOf(r.Metadata), "agent ")
	}
	return r.Branch
}
