package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func threadSetCommand(a *app.App) *cobra.Command {
	o := &threads.ThreadSetOptions{}
	c := &cobra.Command{
		Use:   "set [THREAD]",
		Short: "Change a thread's title, user or metadata",
		Long: `Change a thread's title, user or metadata. A thread without a user can be claimed for one.
A thread that has a user keeps it.`,
		Example: `  lineage thread set --title "A weekend in Lisbon"
  lineage thread set lisbon --metadata '{"tags":["travel"]}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: threads.On(a, app.Changing, func(ctx context.Context, in threads.Keeper, args []string) error {
			o.Thread = app.Arg(args, 0)
			r, err := in.SetThread(ctx, o)
			return printThread(a, r, err)
		}),
	}
	f := c.Flags()
	o.Given = f.Changed
	f.StringVarP(&o.Title, "title", "t", "", "the title")
	f.StringVar(&o.User, "user", "", "the user it belongs to, if it has none yet")
	f.Var(&o.Metadata, "metadata", "JSON to keep with it, in place of what was there; empty for none")
	c.MarkFlagsOneRequired("title", "user", "metadata")
	return c
}
