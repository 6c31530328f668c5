package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

type subagentOptions struct {
	last      uint64
	lastSet   bool
	roles     []string
	task      string
	metadata  app.JSONFlag
	overrides app.OverrideFlags
}

func SubagentCommand(a *app.App) *cobra.Command {
	o := &subagentOptions{}
	c := &cobra.Command{
		Use:   "subagent [CONTEXT]",
		Short: "Create a context for a subagent",
		Long: `Creates a context for an agent that works on its own and reports back with 'lineage
return'. It sees the whole history, at no cost, or only what --last and --role choose;
--last 0 shows it nothing. Prints the new context's id.`,
		Example: `  lineage subagent --task "Find three restaurants." --model small-1
  lineage subagent main --last 2 --role user --json`,
		Args: cobra.MaximumNArgs(1),
	}
	c.RunE = a.OnContext(app.Changing, func(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
		o.lastSet = c.Flags().Changed("last")
		return runSubagent(ctx, s, found, o)
	})
	f := c.Flags()
	f.Uint64VarP(&o.last, "last", "n", 0, "it sees only the last so many messages")
	f.StringSliceVar(&o.roles, "role", nil, "it sees only messages of these roles")
	f.StringVar(&o.task, "task", "", "the task, as its first own message")
	f.Var(&o.metadata, "metadata", "JSON to keep with it")
	o.overrides.Bind(c)
	return c
}

func runSubagent(ctx context.Context, s *app.OpenStore, found *refs.Ref, o *subagentOptions) error {
	options := lineage.ForkOptions{Overrides: o.overrides.Build(), Metadata: o.metadata}
	if options.Metadata == nil {
		options.Metadata = []byte(lineage.SubagentMark)
	}
	if o.lastSet || len(o.roles) > 0 {
		options.Sees = &lineage.Filter{Window: lineage.Window{Last: o.last}, Roles: o.roles}
		if o.lastSet && o.last == 0 {
			options.Sees.Keep = func(*lineage.Entry) bool { return false }
		}
	}
	child, err := found.Context.Fork(ctx, options)
	if err != nil {
		return err
	}
	if o.task != "" {
		if _, err := child.Extend(ctx, lineage.User(o.task)); err != nil {
			return err
		}
	}
	s.Note("a subagent of %s; it reports with 'lineage return %s TEXT'", show.NameOf(found), child.ID())
	return show.Created(ctx, s, child)
}
