package main

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

func contextsCommand(a *app) *cobra.Command {
	alone := false
	c := &cobra.Command{
		Use:   "contexts [THREAD]",
		Short: "List the contexts of a thread, or those without a thread",
		Long: `Lists the contexts of a thread, oldest first: its branches, and forks and subagents
without a name. With --alone it lists the contexts that belong to no thread, which programs make.`,
		Example: `  lineage contexts
  lineage contexts lisbon --json
  lineage contexts --alone`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if alone && len(args) > 0 {
				return usagef("--alone lists what is in no thread: there is no THREAD to name")
			}
			return a.read(ctx, func(ctx context.Context, s *session) error {
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
	table := screen.NewTable(s.out, "", "ID", "BRANCH", "MESSAGES", "CREATED")
	for c, err := range all {
		if err != nil {
			return err
		}
		r, err := s.contextRecord(ctx, c)
		if err != nil {
			return err
		}
		if s.json {
			if err := s.emit(r); err != nil {
				return err
			}
			continue
		}
		mark := " "
		if r.Active {
			mark = "*"
		}
		table.Cells(
			screen.Cell{Text: mark, Style: screen.Green}, screen.Cell{Text: refs.Short(c.ID()), Style: screen.Yellow}, screen.Cell{Text: r.Branch},
			screen.Cell{Text: screen.Count(int64(r.Length)), Right: true}, screen.Cell{Text: screen.Time(r.CreatedAt), Style: screen.Dim},
		)
	}
	if s.json {
		return nil
	}
	if table.Len() == 0 {
		s.note("no contexts")
		return nil
	}
	return table.Print()
}
