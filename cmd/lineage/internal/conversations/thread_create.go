package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func threadCreateCommand(a *app.App) *cobra.Command {
	o := &threads.ThreadCreateOptions{}
	c := &cobra.Command{
		Use:   "create",
		Short: "Create a thread and make it the current one",
		Example: `  lineage thread create --title "Trip to Porto"
  lineage thread create --id porto --user ada --model gpt-5 --system "Be brief."`,
		Args: cobra.NoArgs,
		RunE: threads.On(a, app.NoThread|app.Begins, func(ctx context.Context, in threads.Keeper, _ []string) error {
			r, err := in.CreateThread(ctx, o)
			if err != nil {
				return err
			}
			return a.Print(r, "%s\n", r.ID)
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.Title, "title", "t", "", "the title")
	f.StringVar(&o.ID, "id", "", "an id of your choice, unique in the store")
	f.StringVar(&o.User, "user", "", "the user it belongs to")
	f.Var(&o.Metadata, "metadata", "JSON to keep with it")
	o.Overrides.Bind(c)
	return c
}
