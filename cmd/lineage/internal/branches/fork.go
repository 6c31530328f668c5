package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
)

type forkOptions struct {
	at        string
	branch    string
	thread    string
	count     int
	metadata  app.JSONFlag
	overrides app.OverrideFlags
}

func ForkCommand(a *app.App) *cobra.Command {
	o := &forkOptions{}
	c := &cobra.Command{
		Use:   "fork [NAME]",
		Short: "Create a context that continues from a position",
		Long: `Creates a context at the tip of another, or at any message, that shares its
history: it costs one small record, however long that is. Prints the new context's id,
or of many on a terminal the first ones. A fork is without a name unless --branch gives it one.`,
		Example: `  lineage fork
  lineage fork :2 --branch museums
  lineage fork cheap --count 3 --model small-1 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.at = app.Arg(args, 0)
			if err := app.NewName(o.branch); err != nil {
				return err
			}
			return a.Open(ctx, app.Changing, func(ctx context.Context, s *app.OpenStore) error { return runFork(ctx, s, o) })
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.branch, "branch", "b", "", "name it, as a branch")
	f.StringVar(&o.thread, "into", "", "the thread that it belongs to, if another")
	f.IntVar(&o.count, "count", 1, "the number of forks")
	f.Var(&o.metadata, "metadata", "JSON to keep with it")
	o.overrides.Bind(c)
	return c
}

func runFork(ctx context.Context, s *app.OpenStore, o *forkOptions) error {
	if o.count < 1 {
		return app.Usagef("--count %d: must be at least 1", o.count)
	}
	if o.count > 1 && o.branch != "" {
		return app.Usagef("--count %d: --branch names one fork", o.count)
	}
	found, err := s.Refs.Find(ctx, o.at)
	if err != nil {
		return err
	}
	home, err := s.Home(ctx, found)
	if err != nil {
		return err
	}
	from, err := s.ContextOf(ctx, found)
	if err != nil {
		return err
	}
	if o.thread != "" {
		if home, err = s.Refs.Thread(ctx, o.thread); err != nil {
			return err
		}
	}
	shown := o.count
	if s.Out.Terminal && !s.JSON {
		shown = min(shown, show.MaxItems)
	}
	for i := range o.count {
		fork, err := forkAt(ctx, from.Context, found.Span, home, o)
		if err != nil {
			return err
		}
		if i >= shown {
			continue
		}
		if err := show.Created(ctx, s, fork); err != nil {
			return err
		}
	}
	if more := o.count - shown; more > 0 {
		s.Printf("… and %s more; 'lineage contexts' and --json list them\n", amount.Count(uint64(more)))
	}
	place := ""
	if s.Thread == nil || home.ID() != s.Thread.ID() {
		title, err := threads.QuotedTitle(ctx, s, home)
		if err != nil {
			return err
		}
		place = ", in thread " + title
	}
	s.Note("%s of %s%s", amount.Plural(o.count, "fork"), show.NameOf(found), place)
	return nil
}

// forkAt creates a fork that continues a context from a span, or a branch if the options name one.
func forkAt(ctx context.Context, from *lineage.Context, at lineage.SpanRef, home *lineage.Thread, o *forkOptions) (*lineage.Context, error) {
	if o.branch != "" {
		return home.CreateBranch(ctx, o.branch, lineage.BranchOptions{
			From: from, At: at, Empty: at.IsZero(), Overrides: o.overrides.Build(), Metadata: o.metadata,
		})
	}
	return from.Fork(ctx, lineage.ForkOptions{
		At: at, Empty: at.IsZero(), Thread: home.ID(), Overrides: o.overrides.Build(), Metadata: o.metadata,
	})
}
