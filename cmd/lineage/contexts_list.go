package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

type contextsOptions struct {
	alone bool
	limit int
	after string
}

func contextsCommand(a *app) *cobra.Command {
	o := &contextsOptions{}
	c := &cobra.Command{
		Use:   "contexts [THREAD]",
		Short: "List the contexts of a thread, or those without a thread",
		Long: `Lists the contexts of a thread, oldest first: its branches, forks, subagents and alternatives,
and the records that an import keeps beside the messages. With --alone it lists the contexts that belong to no thread, which programs make.
With --limit only a page is read, and the context to continue after is printed.`,
		Example: `  lineage contexts
  lineage contexts lisbon --limit 100 --json
  lineage contexts --alone`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if o.alone && len(args) > 0 {
				return usagef("--alone lists what is in no thread: there is no THREAD to name")
			}
			return a.open(ctx, reading, func(ctx context.Context, s *session) error {
				var of lineage.ThreadID
				if !o.alone {
					t, err := s.threadNamed(ctx, arg(args, 0))
					if err != nil {
						return err
					}
					of = t.ID()
				}
				return s.listContexts(ctx, of, o)
			})
		}),
	}
	f := c.Flags()
	f.BoolVar(&o.alone, "alone", false, "list the contexts that belong to no thread")
	f.IntVarP(&o.limit, "limit", "n", 0, "at most so many")
	f.StringVar(&o.after, "after", "", "continue after the page that ended with this CONTEXT")
	return c
}

// listContexts prints the contexts of a thread.
func (s *session) listContexts(ctx context.Context, of lineage.ThreadID, o *contextsOptions) error {
	var after lineage.ContextID
	if o.after != "" {
		var err error
		if after, err = structure.ParseID[lineage.ContextID](o.after); err != nil {
			return usagef("--after: %w", err)
		}
	}
	list := s.list("", "ID", "KIND", "NAME", "MESSAGES", "CREATED")
	listed, more := 0, false
	for is, err := range s.store.View().Contexts(ctx, of, after) {
		if err != nil {
			return err
		}
		if is.Thread != of { // all are listed where none is asked for
			continue
		}
		if more = o.limit > 0 && listed == o.limit; more {
			break
		}
		c, err := s.store.Context(ctx, is.ID)
		if err != nil {
			return err
		}
		r, err := records.OfContext(ctx, s.store, c)
		if err != nil {
			return err
		}
		list.add(r, markCell(r.Active), idCell(refs.Short(is.ID)), plainCell(r.Kind), plainCell(contextName(r)), countCell(r.Length), timeCell(r.CreatedAt))
		listed, after = listed+1, is.ID
	}
	if err := list.end("no contexts"); err != nil || !more {
		return err
	}
	s.note("more with --after %s", after)
	return nil
}

// contextName returns the name of a branch, or the one that an import has for a subagent.
func contextName(r *records.Context) string {
	var mark struct {
		Aside string `json:"aside"`
	}
	if r.Kind == string(graph.KindSubagent) && json.Unmarshal(r.Metadata, &mark) == nil {
		return strings.TrimPrefix(mark.Aside, "agent ")
	}
	return r.Branch
}
