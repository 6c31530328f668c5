package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/lineage"
)

func ContextsCommand(a *app.App) *cobra.Command {
	o := &threads.ContextsOptions{}
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
		RunE: a.Does(func(ctx context.Context, args []string) error {
			if o.Alone && len(args) > 0 {
				return app.Usagef("--alone lists what is in no thread: there is no THREAD to name")
			}
			return a.Open(ctx, app.Reading, func(ctx context.Context, s *app.OpenStore) error {
				var thread lineage.ThreadID
				if !o.Alone {
					t, err := threads.ThreadNamed(ctx, s, app.Arg(args, 0))
					if err != nil {
						return err
					}
					thread = t.ID()
				}
				return threads.ListContexts(ctx, s, thread, o)
			})
		}),
	}
	f := c.Flags()
	f.BoolVar(&o.Alone, "alone", false, "list the contexts that belong to no thread")
	f.IntVarP(&o.Limit, "limit", "n", 0, "list at most this many")
	f.StringVar(&o.After, "after", "", "continue after the page that ended with this CONTEXT")
	return c
}
