package main

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

func contextsCommand(a *app) *cobra.Command {
	alone := false
	c := &cobra.Command{
		Use:   "contexts [THREAD]",
		Short: "List the contexts of a thread, or those without a thread",
		Long: `Lists the contexts of a thread, oldest first: its branches, forks, subagents and alternatives,
and the records that an import keeps beside the messages. With --alone it lists the contexts that belong to no thread, which programs make.`,
		Example: `  lineage contexts
  lineage contexts lisbon --json
  lineage contexts --alone`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if alone && len(args) > 0 {
				return usagef("--alone lists what is in no thread: there is no THREAD to name")
			}
			return a.open(ctx, reading, func(ctx context.Context, s *session) error {
				if alone {
					return s.listContexts(ctx, s.store.Contexts(ctx))
				}
				t, err := s.threadNamed(ctx, arg(args, 0))
				if err != nil {
					return err
				}
				return s.listContexts(ctx, t.Contexts(ctx))
			})
		}),
	}
	c.Flags().BoolVar(&alone, "alone", false, "list the contexts that belong to no thread")
	return c
}

// listContexts prints contexts.
func (s *session) listContexts(ctx context.Context, all iter.Seq2[*lineage.Context, error]) error {
	list := s.list("", "ID", "KIND", "NAME", "MESSAGES", "CREATED")
	for c, err := range all {
		if err != nil {
			return err
		}
		r, err := s.contextRecord(ctx, c)
		if err != nil {
			return err
		}
		list.add(r, markCell(r.Active), idCell(refs.Short(c.ID())), plainCell(r.Kind), plainCell(r.name()), countCell(r.Length), timeCell(r.CreatedAt))
	}
	return list.end("no contexts")
}

// name returns the name of a branch, or the one that an import has for a subagent.
func (r *contextRecord) name() string {
	var mark struct {
		Aside string `json:"aside"`
	}
	if r.Kind == kindSubagent && json.Unmarshal(r.Metadata, &mark) == nil {
		return strings.TrimPrefix(mark.Aside, "agent ")
	}
	return r.Branch
}
